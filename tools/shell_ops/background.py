"""Background shells: the port that tools use, and the commands that continue after the call that started them.

Who keeps them, and for how long, is decided by the implementation of the port.
"""

import asyncio
import contextvars
import os
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from tools.base import ToolContext
from tools.result import ToolErrorType, ToolResult, failure
from tools.sandbox.sandbox import NO_LIMITS, SandboxUnavailable
from tools.shell_ops.output import open_spool, read_report, report_file
from tools.shell_ops.process import (
    ChildProcess,
    Process,
    ProcessTraces,
    command_line,
    find_processes,
    is_alive,
    is_namespace_init,
    send_signal,
)
from tools.shell_ops.shell_command import (
    LimitStop,
    ShellCommand,
    command_sandbox,
    exceeded_limit,
    exit_code,
    format_sandbox_failure,
    sandbox_error,
    spawn,
)

__all__ = [
    "BackgroundCommand",
    "BackgroundShells",
    "NewOutput",
    "ReattachedProcesses",
    "ShellExit",
    "ShellView",
    "TooManyShells",
    "background_unavailable",
    "start_background_command",
    "start_in_background",
]


class TooManyShells(Exception):
    """As many background shells run as are allowed; the message says what to do."""


@dataclass(frozen=True)
class ShellView:
    """The current state of a background shell."""

    shell_id: str
    command: str
    state: str
    """In words: for how long it has been running, or how and when it ended."""
    is_running: bool
    output_bytes: int = 0
    """Written so far."""
    unread_bytes: int = 0
    code: int | None = None
    """Exit code, or minus the signal; None while it runs, and if it is unknown."""
    trouble: str = ""
    """Why its sandbox could not be set up, so that the command did not run."""


@dataclass(frozen=True)
class NewOutput:
    """What a background shell has written since it was last read."""

    view: ShellView
    spool: Path
    """The file that contains it, from `start` to `end`; it may have been removed."""
    start: int
    end: int


class BackgroundShells(Protocol):
    """The background shells of a session. Ids are never reused; a thread can see only its own shells."""

    async def start(self, run: ShellCommand) -> ShellView:
        """Start a command; what is needed to find it again is stored durably before it runs.

        Raises:
            TooManyShells: the thread has as many as it may have.
            SandboxUnavailable: a sandbox is required and there is none.
            OSError: the system refuses.
        """
        ...

    async def read(self, context: ToolContext, shell_id: str) -> NewOutput | None:
        """The unread output, which counts as read from now on; a repeated call gets the same and what followed.

        None: the thread has no such shell.
        """
        ...

    async def all(self, context: ToolContext) -> list[ShellView]:
        """Those of the thread, in order of their start."""
        ...

    async def end(self, context: ToolContext, shell_id: str) -> ShellView | None:
        """End one with everything it started; None: the thread has no such shell."""
        ...

    async def find(self, shell_id: str) -> ShellView | None:
        """Find one, whichever thread it belongs to."""
        ...


async def start_in_background(run: ShellCommand, shells: BackgroundShells | None) -> ToolResult:
    """Start a command as a background shell and return the result of the call."""
    if shells is None:
        return background_unavailable()
    try:
        view = await shells.start(run)
    except SandboxUnavailable as error:
        return failure(ToolErrorType.PERMISSION, f"The command was not run, because there is no sandbox: {error}.")
    except (TooManyShells, OSError) as error:
        why = error.strerror or error if isinstance(error, OSError) else None
        message = f"The command could not be started: {why}." if why else str(error)
        return failure(ToolErrorType.EXECUTION, message)
    metadata = {"shell": view.shell_id}
    if view.trouble:
        return failure(ToolErrorType.EXECUTION, format_sandbox_failure(view.trouble), **metadata)
    how = f'bash_output(id="{view.shell_id}") shows its output'
    if view.is_running:
        output = f"Started in the background as {view.shell_id}. {how}, bash_kill ends it."
        return ToolResult(output, display=f"{view.shell_id} runs in the background", metadata=metadata)
    output = f"Started in the background as {view.shell_id}, and it has ended already: {view.state}. {how}."
    return ToolResult(output, display=f"{view.shell_id}: {view.state}", metadata=metadata)


def background_unavailable() -> ToolResult:
    """The result where there is no implementation of the port."""
    message = "Background shells are not available here; run the command without background."
    return failure(ToolErrorType.EXECUTION, message)


@dataclass(frozen=True)
class ShellExit:
    """How a background shell ended."""

    why: str
    """exited, memory_limit, process_limit, sandbox_failed; or the word of the caller that ended it."""
    code: int | None = None
    """Exit code, or minus the signal; None if nobody observed it."""
    trouble: str = ""
    """What the sandbox printed that could not be set up."""


_POLL_S = 0.1


class BackgroundCommand:
    """A command that a task watches until it ends, on its own or because it should.

    Args:
        processes: its processes: a child of this process, or of an earlier one.
        trim: frees what is not kept of its output.
        ending: returns how it ended, when all of it has.
        held: resources that are released then.
        exceeded: returns the limit that it exceeds.
    """

    def __init__(
        self,
        processes: "ChildProcess | ReattachedProcesses",
        trim: Callable[[], None],
        ending: Callable[[str], ShellExit],
        held: AsyncExitStack,
        exceeded: Callable[[], LimitStop | None] = lambda: None,
    ) -> None:
        self._processes = processes
        self._trim = trim
        self._ending = ending
        self._held = held
        self._exceeded = exceeded
        self._reason: str | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def traces(self) -> ProcessTraces:
        """What identifies its processes."""
        return self._processes.traces

    def watch(self, ended: Callable[[ShellExit], Awaitable[None]]) -> None:
        """Watch it from now on, until it has ended and `ended` has returned."""
        # The task gets an empty context, so that nothing of the call that started it outlives that call.
        self._task = asyncio.create_task(self._watch(ended), context=contextvars.Context())

    async def wait(self, seconds: float) -> None:
        """Wait at most this long for it to end, as a command does that cannot even start."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=seconds)

    async def end(self, why: str) -> None:
        """End it with everything it started; returns after `ended` has."""
        self._reason = self._reason or why
        if self._task is not None:
            await asyncio.shield(self._task)

    async def discard(self) -> None:
        """Kill one that is not watched yet."""
        self._processes.kill_all()
        await self._held.aclose()

    async def detach(self) -> None:
        """Stop watching it and let it run."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        self._processes.detach()
        await self._held.aclose()

    async def _watch(self, ended: Callable[[ShellExit], Awaitable[None]]) -> None:
        while not await self._processes.wait(_POLL_S):
            self._trim()
            self._reason = self._reason or self._exceeded()
            if self._reason is not None:
                if self._reason not in ("memory_limit", "process_limit"):  # It would only continue meanwhile.
                    await self._processes.terminate()
                break
        else:
            await self._processes.end_leftovers()
        self._processes.kill_all()
        end = self._ending(self._reason or "exited")
        await self._held.aclose()
        await ended(end)


async def start_background_command(
    run: ShellCommand, path: Path, *, outlives: bool
) -> tuple[BackgroundCommand, ChildProcess]:
    """A command of this process, which waits for its release; `outlives`: it may continue when this process ends.

    Raises:
        SandboxUnavailable, OSError: it cannot be started.
    """
    async with AsyncExitStack() as opening:
        spool = opening.enter_context(open_spool(path))
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        report = os.open(report_file(path), flags, 0o600)
        opening.callback(os.close, report)
        lasts: Literal["always", "session"] = "always" if outlives else "session"
        launch = await opening.enter_async_context(command_sandbox(run.context, lasts))
        child = spawn(run, spool, report, launch)
        max_bytes = run.context.limits.spool_bytes

        def ending(why: str) -> ShellExit:
            if not child.has_started:
                return ShellExit("sandbox_failed", trouble=sandbox_error(spool))
            return ShellExit(why, exit_code(child, run, has_reported=read_report(path).code is not None))

        limits = launch.limits if launch else NO_LIMITS
        held = opening.pop_all()
        return BackgroundCommand(
            child, lambda: spool.trim(max_bytes), ending, held, lambda: exceeded_limit(child, limits)
        ), child
    raise AssertionError("unreachable: nothing here swallows an exception")


_GRACE_S = 2.0
_LINGER_S = 0.2
_REATTACHED_POLL_S = 0.02
_KILL_ROUNDS = 5


class ReattachedProcesses:
    """The processes of a command that an earlier process started: known by their traces, and not our children.

    The methods are those of `ChildProcess`.
    """

    def __init__(self, traces: ProcessTraces) -> None:
        self.traces = traces
        self._first = Process(traces.group, traces.started)

    async def wait(self, seconds: float) -> bool:
        """Wait at most this long for the first process to exit; returns whether it has."""
        if is_alive(self._first):
            await asyncio.sleep(seconds)
        return not is_alive(self._first)

    async def terminate(self) -> None:
        """Ask all of it to end, and wait a little."""
        found = find_processes(self.traces)
        keepers = [process for process in found if is_namespace_init(process.pid)]
        if keepers:
            # The sandbox's own processes would end at once, and with them what should get time to end.
            found = [process for process in found if process not in keepers and process != self._first]
        await self._ask_to_end(found)

    async def end_leftovers(self) -> tuple[str, ...]:
        """Ask what the first process left running to end, and wait a little; returns what that was, in words."""
        await self._wait_until_gone(_LINGER_S)
        left = find_processes(self.traces)
        named = tuple(command_line(process.pid) for process in left)
        await self._ask_to_end(left)
        return named

    def kill_all(self) -> None:
        """Kill what is left."""
        for _ in range(_KILL_ROUNDS):
            left = find_processes(self.traces)
            if not left:
                return
            for process in left:
                send_signal(process, signal.SIGKILL)
            time.sleep(_REATTACHED_POLL_S)

    def detach(self) -> None:
        """Let it run; there is nothing to release."""

    async def _ask_to_end(self, processes: list[Process]) -> None:
        for process in processes:
            send_signal(process, signal.SIGTERM)
        if processes:
            await self._wait_until_gone(_GRACE_S)

    async def _wait_until_gone(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while find_processes(self.traces) and time.monotonic() < deadline:  # noqa: ASYNC110 - the kernel sets no event
            await asyncio.sleep(_REATTACHED_POLL_S)
