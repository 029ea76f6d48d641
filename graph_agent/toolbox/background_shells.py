"""The background shells of a session: started, read, ended; kept track of on disk so that a later run finds them.

They survive the turn. With the session they end, unless the user has them go on (`background_shells = "keep"`).

How a background shell ended, and for how long it has been running, in words.

What a command had written when it was broken off, made readable. Knows the spool file, not whose it is.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

from graph_agent.errors import AgentError
from graph_agent.events import Event, ShellContinued, ShellEnded
from graph_agent.ports import Blobs
from graph_agent.ports.background import NewShell, ShellEnding, ShellRecord, ShellRecords, boot_id
from graph_agent.toolbox.tool_context import ProcessTraces, find_processes, recorded_traces
from tools.context import Limits, ToolContext
from tools.running import run_in_thread
from tools.shell_ops.background import (
    BackgroundCommand,
    NewOutput,
    ReattachedProcesses,
    ShellEndReason,
    ShellExit,
    ShellView,
    TooManyShells,
    start_background_command,
)
from tools.shell_ops.output import clean_output, format_exit_code, last_complete_byte, read_exit_code
from tools.shell_ops.shell_command import ShellCommand

__all__ = ["Shells", "ending_in_words", "lasting", "readable_end"]

_REASONS: Mapping[str, str] = {
    "kill": "ended by bash_kill",
    "output_limit": "ended because it wrote more than it may; only the beginning was kept",
    "session": "ended with the session that started it",
    "found_dead": "ended because the program that started it had died",
    "sandbox_failed": "never ran, as its sandbox could not be set up",
}


def ending_in_words(ending: ShellEnding, command: str) -> str:
    """What a person and the model are told of it."""
    if ending.reason in _REASONS:
        return _REASONS[ending.reason]
    code = "" if ending.code is None else format_exit_code(ending.code, command)
    if ending.reason == "exited_unobserved":
        return (
            f"ended while nobody watched, {code}"
            if code
            else "ended with the program that had started it, or after"
        )
    return code or "ended, nobody knows how"


def lasting(seconds: float) -> str:
    """A time span as a person says it."""
    whole = max(0, round(seconds))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if whole >= 2 * size:
            return f"{whole // size} {unit}"
    return f"{whole} s"


_log = logging.getLogger(__name__)

_AT_ONCE_S = 0.2
"""A command that cannot even begin has ended by then, and its caller is told."""


class Shells:
    """Implements the tools' `BackgroundShells`, the session's `KeptShells` and the model's `ShellNews`."""

    def __init__(
        self,
        records: ShellRecords,
        blobs: Blobs,
        tell: Callable[[Event], None],
        *,
        keeps: bool = False,
        limits: Limits | None = None,
    ) -> None:
        self._records = records
        self._blobs = blobs
        self._tell = tell
        self._keeps = keeps
        self._limits = limits or Limits()
        self._going: dict[int, BackgroundCommand] = {}
        self._seen: set[int] = set()
        """Those that calls of this run have told the model the end of."""

    async def start(self, run: ShellCommand) -> ShellView:
        """See `BackgroundShells.start`."""
        context = run.context
        await self._require_room(context.thread_id)
        path = self._blobs.spool(context.thread_id, context.call_id, context.attempt)
        shell, child = await start_background_command(run, path, outlives=self._keeps)
        try:
            if context.processes is not None:
                await context.processes.record(context, shell.traces.group, shell.traces.started)
            new = NewShell(context.thread_id, context.call_id, context.attempt, run.command, str(run.start))
            number = await self._records.add(new)
        except BaseException:
            await shell.discard()
            raise
        child.release()
        self._watch(number, new, shell)
        await shell.wait(_AT_ONCE_S)
        return self._told(await self._view(await self._record(number)))

    async def read(self, context: ToolContext, shell_id: str) -> NewOutput | None:
        """See `BackgroundShells.read`."""
        record = await self._of_thread(context, shell_id)
        if record is None:
            return None
        view = self._told(await self._view(record))
        start = record.read_from if record.read_by == context.call_id else record.read_until
        path = self._spool(record)
        end = (
            await run_in_thread(last_complete_byte, path, start)
            if view.is_running
            else max(start, view.output_bytes)
        )
        await self._records.read(record.number, context.call_id, start, end)
        return NewOutput(view, path, start, end)

    async def all(self, context: ToolContext) -> list[ShellView]:
        """See `BackgroundShells.all`."""
        return [self._told(await self._view(record)) for record in await self._records.of_thread(context.thread_id)]

    async def end(self, context: ToolContext, shell_id: str) -> ShellView | None:
        """See `BackgroundShells.end`."""
        record = await self._of_thread(context, shell_id)
        if record is None:
            return None
        if record.number in self._going:
            await self._going[record.number].end("kill")
        return await self._view(await self._record(record.number))

    async def find(self, shell_id: str) -> ShellView | None:
        """See `BackgroundShells.find`."""
        number = _number(shell_id)
        record = None if number is None else await self._records.get(number)
        return None if record is None else await self._view(record)

    async def ended(self, thread_id: str) -> Mapping[str, str]:
        """See `ShellNews.ended`."""
        found = await self._records.of_thread(thread_id)
        return {
            _id(record.number): f"{ending_in_words(record.ending, record.shell.command)}  $ {record.shell.command}"
            for record in found
            if record.ending is not None
            and record.ending.reason != "kill"
            and record.number not in self._seen
            and not await run_in_thread(self._was_read, record)
        }

    def _told(self, view: ShellView) -> ShellView:
        if not view.is_running and (number := _number(view.shell_id)) is not None:
            self._seen.add(number)
        return view

    def _was_read(self, record: ShellRecord) -> bool:
        """Whether a call has read all that it wrote, and so its end."""
        return bool(record.read_by) and record.read_until >= _size(self._spool(record))

    async def reattach(self, thread_id: str) -> None:
        """See `KeptShells.take_up`."""
        for record in await self._records.running(thread_id):
            if record.number in self._going:
                continue
            traces = _traces(record, self._blobs)
            if traces is None or not await run_in_thread(_lives, traces):
                await self._take_in(
                    record, ShellExit("exited_unobserved", await run_in_thread(read_exit_code, self._spool(record)))
                )
                continue
            self._watch(record.number, record.shell, self._adopted(record, traces))
            if self._keeps:
                self._tell(ShellContinued(_id(record.number), record.shell.command))
            else:
                await self._going[record.number].end("found_dead")

    async def close(self) -> None:
        """See `KeptShells.close`."""
        going, self._going = self._going, {}
        if not self._keeps:
            await asyncio.gather(*(shell.end("session") for shell in going.values()))
            return
        for number, shell in going.items():
            await shell.detach()
            if (record := await self._records.get(number)) is not None and record.ending is None:
                self._tell(ShellContinued(_id(number), record.shell.command))

    async def _require_room(self, thread_id: str) -> None:
        running = [one for one in await self._records.of_thread(thread_id) if one.number in self._going]
        if len(running) < self._limits.shells:
            return
        named = ", ".join(_id(one.number) for one in running)
        raise TooManyShells(
            f"{len(running)} background shells run already ({named}); end one with bash_kill first."
        )

    def _watch(self, number: int, new: NewShell, shell: BackgroundCommand) -> None:
        async def ended(outcome: ShellExit) -> None:
            self._going.pop(number, None)
            await self._note(number, new, outcome)

        self._going[number] = shell
        shell.watch(ended)

    async def _note(self, number: int, new: NewShell, outcome: ShellExit) -> None:
        ending = ShellEnding(outcome.why, outcome.code, outcome.trouble)
        try:
            is_first = await self._records.end(number, ending)
        except AgentError:
            # It has ended; only that could not be written down, and the next run finds it out.
            _log.exception("the end of background shell %d could not be recorded", number)
            return
        if is_first and outcome.why != "kill":
            told = ending_in_words(ending, new.command)
            self._tell(ShellEnded(_id(number), new.command, told, outcome.why))

    async def _take_in(self, record: ShellRecord, outcome: ShellExit) -> None:
        await self._note(record.number, record.shell, outcome)

    def _adopted(self, record: ShellRecord, traces: ProcessTraces) -> BackgroundCommand:
        path = self._spool(record)

        def ending(why: ShellEndReason) -> ShellExit:
            return ShellExit(why, read_exit_code(path))

        return BackgroundCommand(
            ReattachedProcesses(traces), lambda: _size(path), self._limits.spool_bytes, ending, AsyncExitStack()
        )

    async def _record(self, number: int) -> ShellRecord:
        found = await self._records.get(number)
        if found is None:
            raise LookupError(f"background shell {number} was deleted")
        return found

    async def _of_thread(self, context: ToolContext, shell_id: str) -> ShellRecord | None:
        number = _number(shell_id)
        record = None if number is None else await self._records.get(number)
        return record if record is not None and record.shell.thread_id == context.thread_id else None

    async def _view(self, record: ShellRecord) -> ShellView:
        if record.ending is None and record.number not in self._going:
            # It ended without anybody taking that in, or another process has the thread's shells.
            record = await self._settled(record)
        path, ending = self._spool(record), record.ending
        size = await run_in_thread(_size, path)
        readable = size if ending else await run_in_thread(last_complete_byte, path, record.read_until)
        state = (
            f"running for {lasting(_seconds_since(record.started_at))}"
            if ending is None
            else ending_in_words(ending, record.shell.command)
        )
        return ShellView(
            _id(record.number),
            record.shell.command,
            state,
            is_running=ending is None,
            output_bytes=size,
            unread_bytes=max(0, readable - record.read_until),
            code=ending.code if ending else None,
            trouble=ending.error if ending else "",
        )

    async def _settled(self, record: ShellRecord) -> ShellRecord:
        traces = _traces(record, self._blobs)
        if traces is not None and await run_in_thread(_lives, traces):
            return record
        await self._take_in(
            record, ShellExit("exited_unobserved", await run_in_thread(read_exit_code, self._spool(record)))
        )
        return await self._record(record.number)

    def _spool(self, record: ShellRecord) -> Path:
        return self._blobs.spool(record.shell.thread_id, record.shell.call_id, record.shell.attempt)


def _traces(record: ShellRecord, blobs: Blobs) -> ProcessTraces | None:
    """What its processes are known by; None where none of them can live any more."""
    row = record.journal
    if row is None or row.extra.get("boot_id") != boot_id():
        return None
    return recorded_traces(row, record.shell.thread_id, blobs)


def _lives(traces: ProcessTraces) -> bool:
    return bool(find_processes(traces))


def _id(number: int) -> str:
    return f"sh{number}"


def _number(shell_id: str) -> int | None:
    digits = shell_id.strip().removeprefix("sh")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 15 else None


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - asked ten times a second
    except OSError:
        return 0


def _seconds_since(at: str) -> float:
    return time.time() - datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp()


_BYTES = 4_000
"""How much is kept: it goes into the record, to the person who decides, and to the model."""
_CONTINUES = range(0x80, 0xC0)
"""Bytes that cannot begin a character."""


def readable_end(spool: Path) -> str:
    """The end of the spool without escape sequences; empty where there is none, or it cannot be read."""
    try:
        with spool.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _BYTES))
            raw = file.read()
    except OSError:
        return ""
    if size > _BYTES:
        raw = raw[next((at for at, byte in enumerate(raw[:4]) if byte not in _CONTINUES), 0) :]
    return clean_output(raw).strip("\n")
