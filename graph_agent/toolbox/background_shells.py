"""The background shells of a session: started, read and ended, and recorded so that a later run finds them.

They survive the turn. They end with the session, unless the user keeps them (`background_shells = "keep"`).
"""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

from graph_agent.errors import AgentError
from graph_agent.events import Event, ShellContinued, ShellEnd, ShellEnded
from graph_agent.ports import Blobs
from graph_agent.ports.background import BackgroundTask, NewShell, ShellEnding, ShellRecord, ShellRecords, boot_id
from graph_agent.toolbox.tool_context import ProcessTraces, find_processes, recorded_traces
from tools.base import Limits, ToolContext
from tools.running import run_in_thread
from tools.shell_ops.background import (
    BackgroundCommand,
    NewOutput,
    ReattachedProcesses,
    ShellExit,
    ShellView,
    TooManyShells,
    start_background_command,
)
from tools.shell_ops.output import (
    ShellReport,
    clean_output,
    format_exit_code,
    last_complete_byte,
    read_report,
    trim_spool,
)
from tools.shell_ops.shell_command import ShellCommand

__all__ = ["Shells", "format_duration", "format_ending", "read_spool_end"]

_REASONS: Mapping[str, str] = {
    "kill": "ended by bash_kill",
    "output_limit": "ended by an earlier version because it wrote more than 64 MB; only the beginning was kept",
    "memory_limit": "ended because it used more memory than the setting sandbox_memory allows",
    "process_limit": "ended because it had more processes than the setting sandbox_processes allows",
    "session": "ended with the session that started it",
    "found_dead": "ended because the program that started it ended unexpectedly",
    "user": "ended by the user",
    "sandbox_failed": "never ran, as its sandbox could not be set up",
}
_END_REASONS: Mapping[str, ShellEnd] = {reason: reason for reason in get_args(ShellEnd)}
_START_S = 0.2
"""A command that cannot even begin has ended by then, and its result says so."""
_SPOOL_END_BYTES = 4_000
"""How much of an output goes into the record, to the person who decides, and to the model."""

_log = logging.getLogger(__name__)


class Shells:
    """Implements the tools' `BackgroundShells`, the session's `BackgroundShells` and the model's `ShellNotices`."""

    def __init__(
        self,
        records: ShellRecords,
        blobs: Blobs,
        publish: Callable[[Event], None],
        *,
        keeps: bool = False,
        limits: Limits | None = None,
    ) -> None:
        self._records = records
        self._blobs = blobs
        self._publish = publish
        self._keeps = keeps
        self._limits = limits or Limits()
        self._running: dict[int, BackgroundCommand] = {}
        self._reported: set[int] = set()
        """Shells whose end a call of this run has reported to the model."""

    async def start(self, run: ShellCommand) -> ShellView:
        """See the tools' port."""
        context = run.context
        records = await self._records.of_thread(context.thread_id)
        running = [_id(one.number) for one in records if one.number in self._running]
        if len(running) >= self._limits.shells:
            named = ", ".join(running)
            raise TooManyShells(
                f"{len(running)} background shells run already ({named}); end one with bash_kill first."
            )
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
        await shell.wait(_START_S)
        return await self._reported_view(await self._record(number))

    async def read(self, context: ToolContext, shell_id: str) -> NewOutput | None:
        """See the tools' port."""
        record = await self._record_of_thread(context, shell_id)
        if record is None:
            return None
        view = await self._reported_view(record)
        start = record.read_from if record.read_by == context.call_id else record.read_until
        path = self._spool(record)
        end = max(start, view.output_bytes)
        if view.is_running:
            end = await run_in_thread(last_complete_byte, path, start)
        await self._records.read(record.number, context.call_id, start, end)
        return NewOutput(view, path, start, end)

    async def all(self, context: ToolContext) -> list[ShellView]:
        """See the tools' port."""
        return [await self._reported_view(record) for record in await self._records.of_thread(context.thread_id)]

    async def end(self, context: ToolContext, shell_id: str) -> ShellView | None:
        """See the tools' port."""
        record = await self._record_of_thread(context, shell_id)
        if record is None:
            return None
        if record.number in self._running:
            await self._running[record.number].end("kill")
        return await self._view(await self._record(record.number))

    async def find(self, shell_id: str) -> ShellView | None:
        """See the tools' port."""
        number = _number(shell_id)
        record = None if number is None else await self._records.get(number)
        return None if record is None else await self._view(record)

    async def ended(self, thread_id: str) -> Mapping[str, str]:
        """See `ShellNotices.ended`."""
        ended: dict[str, str] = {}
        for record in await self._records.of_thread(thread_id):
            ending = record.ending
            if ending is None or ending.reason == "kill" or record.number in self._reported:
                continue
            # A call that read all of the output has reported the end, too.
            size = await run_in_thread(_size, self._spool(record))
            if not (record.read_by and record.read_until >= size):
                state = format_ending(ending, await run_in_thread(read_report, self._spool(record)))
                ended[_id(record.number)] = f"{state}  $ {record.shell.command}"
        return ended

    async def reattach(self, thread_id: str) -> None:
        """See the session's port."""
        for record in await self._records.running(thread_id):
            if record.number in self._running:
                continue
            traces = await self._traces_if_alive(record)
            if traces is None:
                await self._record_unobserved_end(record)
                continue
            self._watch(record.number, record.shell, self._reattached(record, traces))
            if self._keeps:
                self._publish(ShellContinued(_id(record.number), record.shell.command))
            else:
                await self._running[record.number].end("found_dead")

    @property
    def running_count(self) -> int:
        """See the session's port."""
        return len(self._running)

    async def running(self, thread_id: str) -> list[BackgroundTask]:
        """See the session's port."""
        records = [one for one in await self._records.of_thread(thread_id) if one.number in self._running]
        views = [await self._view(record) for record in records]
        return [BackgroundTask(view.shell_id, "command", view.command, view.state) for view in views]

    async def stop(self, shell_id: str) -> bool:
        """See the session's port."""
        shell = self._running.get(_number(shell_id) or 0)
        if shell is not None:
            await shell.end("user")
        return shell is not None

    async def output(self, shell_id: str) -> str | None:
        """See the session's port."""
        record = await self._records.get(_number(shell_id) or 0)
        return None if record is None else await run_in_thread(read_spool_end, self._spool(record))

    async def close(self) -> None:
        """See the session's port."""
        running, self._running = self._running, {}
        if not self._keeps:
            await asyncio.gather(*(shell.end("session") for shell in running.values()))
            return
        for number, shell in running.items():
            await shell.detach()
            if (record := await self._records.get(number)) is not None and record.ending is None:
                self._publish(ShellContinued(_id(number), record.shell.command))

    def _watch(self, number: int, new: NewShell, shell: BackgroundCommand) -> None:
        async def on_end(outcome: ShellExit) -> None:
            self._running.pop(number, None)
            await self._record_end(number, new, outcome)

        self._running[number] = shell
        shell.watch(on_end)

    def _reattached(self, record: ShellRecord, traces: ProcessTraces) -> BackgroundCommand:
        path = self._spool(record)

        def ending(why: str) -> ShellExit:
            return ShellExit(why, read_report(path).code)

        max_bytes = self._limits.spool_bytes
        return BackgroundCommand(
            ReattachedProcesses(traces), lambda: _trim(path, max_bytes), ending, AsyncExitStack()
        )

    async def _traces_if_alive(self, record: ShellRecord) -> ProcessTraces | None:
        """What identifies its processes; None if none of them runs any more."""
        row = record.journal
        if row is None or row.extra.get("boot_id") != boot_id():
            return None
        traces = recorded_traces(row, record.shell.thread_id, self._blobs)
        if traces is None or not await run_in_thread(find_processes, traces):
            return None
        return traces

    async def _record_unobserved_end(self, record: ShellRecord) -> None:
        report = await run_in_thread(read_report, self._spool(record))
        await self._record_end(record.number, record.shell, ShellExit("exited_unobserved", report.code))

    async def _record_end(self, number: int, new: NewShell, outcome: ShellExit) -> None:
        ending = ShellEnding(outcome.why, outcome.code, outcome.trouble)
        try:
            is_first = await self._records.end(number, ending)
        except AgentError:
            # It has ended; only that could not be stored, and the next run finds it out.
            _log.exception("the end of background shell %d could not be recorded", number)
            return
        if is_first and outcome.why != "kill":
            spool = self._blobs.spool(new.thread_id, new.call_id, new.attempt)
            text = format_ending(ending, await run_in_thread(read_report, spool))
            self._publish(ShellEnded(_id(number), new.command, text, _END_REASONS[outcome.why]))

    async def _record(self, number: int) -> ShellRecord:
        found = await self._records.get(number)
        if found is None:
            raise LookupError(f"background shell {number} was deleted")
        return found

    async def _record_of_thread(self, context: ToolContext, shell_id: str) -> ShellRecord | None:
        number = _number(shell_id)
        record = None if number is None else await self._records.get(number)
        return record if record is not None and record.shell.thread_id == context.thread_id else None

    async def _reported_view(self, record: ShellRecord) -> ShellView:
        """The view for a result of a call; an end that it shows is not reported again."""
        view = await self._view(record)
        if not view.is_running:
            self._reported.add(record.number)
        return view

    async def _view(self, record: ShellRecord) -> ShellView:
        # Another process may run the thread's shells; otherwise this one ended and nobody recorded it.
        is_unwatched = record.ending is None and record.number not in self._running
        if is_unwatched and await self._traces_if_alive(record) is None:
            await self._record_unobserved_end(record)
            record = await self._record(record.number)
        path, ending, command = self._spool(record), record.ending, record.shell.command
        size = await run_in_thread(_size, path)
        if ending is None:
            started = datetime.fromisoformat(record.started_at).replace(tzinfo=UTC).timestamp()
            state = f"running for {format_duration(time.time() - started)}"
            readable = await run_in_thread(last_complete_byte, path, record.read_until)
        else:
            state, readable = format_ending(ending, await run_in_thread(read_report, path)), size
        return ShellView(
            _id(record.number),
            command,
            state,
            is_running=ending is None,
            output_bytes=size,
            unread_bytes=max(0, readable - record.read_until),
            code=ending.code if ending else None,
            trouble=ending.error if ending else "",
        )

    def _spool(self, record: ShellRecord) -> Path:
        return self._blobs.spool(record.shell.thread_id, record.shell.call_id, record.shell.attempt)


def format_ending(ending: ShellEnding, report: ShellReport) -> str:
    """How a shell ended, in words for a person and the model."""
    if ending.reason in _REASONS:
        return _REASONS[ending.reason]
    code = "" if ending.code is None else format_exit_code(ending.code, report)
    if ending.reason == "exited_unobserved":
        after = "ended with the program that started it, or later"
        return f"ended unobserved, {code}" if code else after
    return code or "ended, exit code unknown"


def format_duration(seconds: float) -> str:
    """A time span in its largest unit of which it has at least two."""
    whole = max(0, round(seconds))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if whole >= 2 * size:
            return f"{whole // size} {unit}"
    return f"{whole} s"


def read_spool_end(spool: Path) -> str:
    """The end of what a command wrote, without escape sequences; empty if nothing can be read."""
    try:
        with spool.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _SPOOL_END_BYTES))
            raw = file.read()
    except OSError:
        return ""
    if size > _SPOOL_END_BYTES:
        # A character is at most four bytes; its second to fourth are 0x80 to 0xBF.
        raw = raw[next((at for at, byte in enumerate(raw[:4]) if byte not in range(0x80, 0xC0)), 0) :]
    return clean_output(raw).strip("\n")


def _id(number: int) -> str:
    return f"sh{number}"


def _number(shell_id: str) -> int | None:
    digits = shell_id.strip().removeprefix("sh")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 15 else None


def _trim(spool: Path, max_bytes: int) -> None:
    if _size(spool) > max_bytes:
        with contextlib.suppress(FileNotFoundError):
            file = os.open(spool, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                trim_spool(file, max_bytes)
            finally:
                os.close(file)


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - asked ten times a second
    except OSError:
        return 0
