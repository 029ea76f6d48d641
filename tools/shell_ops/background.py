"""Commands that go on in the background, as tools see them: the one port, and what comes and goes through it.

Who keeps them, and for how long, is not decided here.

A command that goes on after the call that started it: watched until it ends, by itself or because it should.

A background command that an earlier process of ours started: nobody's child, and known by its traces alone.
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

from tools.context import ToolContext
from tools.result import ToolErrorType, ToolResult, failure
from tools.sandbox.sandbox import SandboxUnavailable
from tools.shell_ops.output import Spool, clean_output, exit_code_file, open_spool, read_exit_code
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
from tools.shell_ops.start import ShellCommand, exit_code, format_sandbox_failure, spawn, walls

__all__ = [
    "BackgroundCommand",
    "BackgroundShells",
    "Body",
    "NewOutput",
    "ReattachedProcesses",
    "ShellEndReason",
    "ShellExit",
    "ShellView",
    "TooManyShells",
    "background_unavailable",
    "start_background_command",
    "started",
    "unknown_shell",
]


class TooManyShells(Exception):
    """So many run already that no more are started; the message says what to do."""


@dataclass(frozen=True)
class ShellView:
    """One of them, as it is now."""

    shell_id: str
    command: str
    state: str
    """In words: for how long it has been running, or how and when it ended."""
    is_running: bool
    output_bytes: int = 0
    """Written so far."""
    unread_bytes: int = 0
    code: int | None = None
    """Exit code, or minus the signal; None while it runs, and where nobody knows."""
    trouble: str = ""
    """Why the command itself never ran: its sandbox could not be set up."""


@dataclass(frozen=True)
class NewOutput:
    """What one of them has written since it was last read."""

    view: ShellView
    spool: Path
    """Where it stands, `start` to `end`; the file may be gone."""
    start: int
    end: int


class BackgroundShells(Protocol):
    """The background shells of a session. Ids are never given twice; a thread sees its own alone."""

    async def start(self, run: ShellCommand) -> ShellView:
        """Start a command; what is needed to find it again is durable before it is let go.

        Raises:
            NoRoom: the thread has as many as it may have.
            NoSandbox: nothing may run without one, and there is none.
            OSError: the system refuses.
        """
        ...

    async def read(self, context: ToolContext, shell_id: str) -> NewOutput | None:
        """What is new, which counts as read from now on; a call that asks again gets the same and what came since.

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
        """Look one up, whichever thread it belongs to."""
        ...


async def started(run: ShellCommand, shells: BackgroundShells | None) -> ToolResult:
    """The result of a call that starts one."""
    if shells is None:
        return background_unavailable()
    try:
        view = await shells.start(run)
    except TooManyShells as full:
        return failure(ToolErrorType.EXECUTION, str(full))
    except SandboxUnavailable as refusal:
        return failure(ToolErrorType.PERMISSION, f"The command was not run, for want of a sandbox: {refusal}.")
    except OSError as error:
        return failure(ToolErrorType.EXECUTION, f"The command could not be started: {error.strerror or error}.")
    return _told(view)


def _told(view: ShellView) -> ToolResult:
    metadata = {"shell": view.shell_id}
    if view.trouble:
        return failure(ToolErrorType.EXECUTION, format_sandbox_failure(view.trouble), **metadata)
    look = f'bash_output(id="{view.shell_id}") shows what it writes'
    if view.is_running:
        told = f"Started in the background as {view.shell_id}. {look}, bash_kill ends it."
        return ToolResult(told, display=f"{view.shell_id} runs in the background", metadata=metadata)
    told = f"Started in the background as {view.shell_id}, and it has ended already: {view.state}. {look}."
    return ToolResult(told, display=f"{view.shell_id}: {view.state}", metadata=metadata)


def background_unavailable() -> ToolResult:
    """For tools that nobody gave the port."""
    return failure(ToolErrorType.EXECUTION, "There are no background shells here; run the command without it.")


def unknown_shell(shell_id: str, known: list[ShellView]) -> ToolResult:
    """For an id that the thread has no shell of."""
    named = ", ".join(view.shell_id for view in known[-10:])
    there = f"it has {named}" if named else "it has none; bash with background=true starts one"
    return failure(ToolErrorType.NOT_FOUND, f"This thread has no background shell {shell_id!r}: {there}.")


ShellEndReason = Literal[
    "exited", "kill", "output_limit", "session", "found_dead", "exited_unobserved", "sandbox_failed"
]
"""own: by itself. kill: bash_kill. flood: it wrote too much. session: with the session. found: with the next one,
as its own had died. unseen: by itself, while nobody watched. walls: its sandbox could not be set up."""
_LOOK_S = 0.1
_TROUBLE_BYTES = 1_000


@dataclass(frozen=True)
class ShellExit:
    """How one ended."""

    why: ShellEndReason
    code: int | None = None
    """Exit code, or minus the signal; None where nobody saw it."""
    trouble: str = ""
    """What the walls said that could not be put up."""


class Body(Protocol):
    """The processes of a command."""

    @property
    def traces(self) -> ProcessTraces: ...

    async def wait(self, seconds: float) -> bool:
        """Wait this long at most for its first process to end; whether it has."""
        ...

    async def terminate(self) -> None:
        """Ask all of it to end, and wait a little."""
        ...

    async def end_leftovers(self) -> tuple[str, ...]:
        """Ask what the first process left running to end, and wait a little."""
        ...

    def kill_all(self) -> None:
        """Kill what is left."""
        ...

    def detach(self) -> None:
        """Look at it no more."""
        ...


class BackgroundCommand:
    """One such command, held back until it is let go, then watched by a task of its own.

    Args:
        body: its processes.
        size: how much it has written.
        most_bytes: how much it may write.
        ending: says how it ended, when all of it has.
        held: what is given back then.
    """

    def __init__(
        self,
        body: Body,
        size: Callable[[], int],
        most_bytes: int,
        ending: Callable[[ShellEndReason], ShellExit],
        held: AsyncExitStack,
    ) -> None:
        self._body = body
        self._size = size
        self._most_bytes = most_bytes
        self._ending = ending
        self._held = held
        self._asked: ShellEndReason | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def traces(self) -> ProcessTraces:
        """What its processes are known by."""
        return self._body.traces

    def watch(self, ended: Callable[[ShellExit], Awaitable[None]]) -> None:
        """Watch it from now on, until it has ended and that was taken in."""
        # In a context of its own: what belongs to the call that started it must not live on with it.
        self._task = asyncio.create_task(self._watch(ended), context=contextvars.Context())

    async def settle(self, seconds: float) -> None:
        """Give it this long to end, as a command does that cannot even begin."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=seconds)

    async def end(self, why: ShellEndReason) -> None:
        """End it with everything it started; returns when that was taken in."""
        self._asked = self._asked or why
        if self._task is not None:
            await asyncio.shield(self._task)

    async def discard(self) -> None:
        """End one that is not watched yet."""
        self._body.kill_all()
        await self._held.aclose()

    async def detach(self) -> None:
        """Watch it no more, and let it go on."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        self._body.detach()
        await self._held.aclose()

    async def _watch(self, ended: Callable[[ShellExit], Awaitable[None]]) -> None:
        while not await self._body.wait(_LOOK_S):
            if self._size() > self._most_bytes:
                self._asked = self._asked or "output_limit"
            if self._asked is not None:
                await self._body.terminate()
                break
        else:
            await self._body.end_leftovers()
        self._body.kill_all()
        outcome = self._ending(self._asked or "exited")
        await self._held.aclose()
        await ended(outcome)


async def start_background_command(
    run: ShellCommand, path: Path, *, outlives: bool
) -> tuple[BackgroundCommand, ChildProcess]:
    """A command of this process, held back; `outlives`: it can go on when this process ends.

    Raises:
        NoSandbox, OSError: it cannot be started.
    """
    async with AsyncExitStack() as opening:
        spool = opening.enter_context(open_spool(path))
        told = os.open(
            exit_code_file(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        opening.callback(os.close, told)
        confined = await opening.enter_async_context(walls(run.context, "always" if outlives else "session"))
        child = spawn(run, spool, told, confined)
        most = run.context.limits.spool_bytes

        def ending(why: ShellEndReason) -> ShellExit:
            return _ending(why, child, run, spool, path)

        return BackgroundCommand(child, lambda: spool.size, most, ending, opening.pop_all()), child
    raise AssertionError("unreachable: nothing here swallows an exception")


def _ending(why: ShellEndReason, child: ChildProcess, run: ShellCommand, spool: Spool, path: Path) -> ShellExit:
    if not child.began:
        return ShellExit("sandbox_failed", trouble=clean_output(spool.read(0, _TROUBLE_BYTES)).strip())
    if why == "output_limit":
        spool.cut(run.context.limits.spool_bytes)
    return ShellExit(why, exit_code(child, run, has_told=read_exit_code(path) is not None))


_GRACE_S = 2.0
_LINGER_S = 0.2
_LOOK_S_ADOPTED = 0.02
_ROUNDS = 5


class ReattachedProcesses:
    """The body of a command that goes on without the process that started it."""

    def __init__(self, traces: ProcessTraces) -> None:
        self._traces = traces
        self._first = Process(traces.group, traces.started)

    @property
    def traces(self) -> ProcessTraces:
        """What its processes are known by."""
        return self._traces

    async def wait(self, seconds: float) -> bool:
        """Wait this long at most for its first process to end; whether it has."""
        if is_alive(self._first):
            await asyncio.sleep(seconds)
        return not is_alive(self._first)

    async def terminate(self) -> None:
        """Ask all of it to end, and wait a little."""
        await self._ask(self._asked())

    async def end_leftovers(self) -> tuple[str, ...]:
        """Ask what the first process left running to end; in words, what that was."""
        await self._are_gone(_LINGER_S)
        left = find_processes(self._traces)
        named = tuple(command_line(process.pid) for process in left)
        await self._ask(left)
        return named

    def kill_all(self) -> None:
        """Kill what is left."""
        for _ in range(_ROUNDS):
            left = find_processes(self._traces)
            if not left:
                return
            for process in left:
                send_signal(process, signal.SIGKILL)
            time.sleep(_LOOK_S_ADOPTED)

    def detach(self) -> None:
        """Nothing is held of it."""

    def _asked(self) -> list[Process]:
        """All but the walls themselves: they would fall at once, and with them what was only asked to end."""
        found = find_processes(self._traces)
        within = [process for process in found if is_namespace_init(process.pid)]
        return [one for one in found if one not in within and one != self._first] if within else found

    async def _ask(self, processes: list[Process]) -> None:
        for process in processes:
            send_signal(process, signal.SIGTERM)
        if processes:
            await self._are_gone(_GRACE_S)

    async def _are_gone(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while find_processes(self._traces) and time.monotonic() < deadline:  # noqa: ASYNC110 - the kernel sets no event
            await asyncio.sleep(_LOOK_S_ADOPTED)
