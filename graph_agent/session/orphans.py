"""What is left running of a command whose process of ours died: found, and ended when a person wants it.

Goes by what the journal recorded: group, start time of the group's leader, boot. A group whose leader or boot is
another is somebody else's and is neither shown nor touched.
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Sequence

from graph_agent.ports import JournalRow
from graph_agent.store.processes import Process, boot_id, members_of, process_started

__all__ = ["end", "goes_on", "living", "still_running"]

_TERM_GRACE_S = 2.0
_KILL_GRACE_S = 2.0
_PAUSE_S = 0.02


def living(rows: Sequence[JournalRow]) -> tuple[int, ...]:
    """The living processes of all attempts of a call, by pid."""
    return tuple(process.pid for process in _living(rows))


async def end(rows: Sequence[JournalRow]) -> tuple[int, ...]:
    """Ask them to end, kill what has not ended after a short grace; returns what lives all the same."""
    await _signal(rows, signal.SIGTERM, _TERM_GRACE_S)
    await _signal(rows, signal.SIGKILL, _KILL_GRACE_S)
    return living(rows)


def still_running(call_id: str, pids: Sequence[int]) -> str:
    """Why a call is not tried again yet, in words."""
    named = ", ".join(map(str, pids))
    return (
        f"call {call_id} is not tried again while processes of its last attempt run (pid {named}); "
        "end them first, or wait for them"
    )


def goes_on(call_id: str, pids: Sequence[int]) -> str:
    """That a call is settled and what it started runs on all the same, in words."""
    named = " ".join(map(str, pids))
    return f"what call {call_id} started still runs (pid {', '.join(map(str, pids))}); end it with: kill {named}"


async def _signal(rows: Sequence[JournalRow], number: signal.Signals, grace_s: float) -> None:
    for process in _living(rows):
        # Looked at once more: a pid may be another's between two looks.
        if process_started(process.pid) == process.started:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, number)
    deadline = time.monotonic() + grace_s
    while _living(rows) and time.monotonic() < deadline:  # noqa: ASYNC110 - the kernel sets no event
        await asyncio.sleep(_PAUSE_S)


def _living(rows: Sequence[JournalRow]) -> list[Process]:
    groups = {
        row.process_group: row.process_started
        for row in rows
        if row.process_group and row.process_started and row.extra.get("boot_id") == boot_id()
    }
    return [
        process
        for group, started in groups.items()
        # The leader may be gone while others of its group live on: its number stays taken as long as they do.
        if process_started(group) in (started, None)
        for process in members_of(group)
    ]
