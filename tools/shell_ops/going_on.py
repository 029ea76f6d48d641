"""A command that goes on after the call that started it: watched until it ends, by itself or because it should."""

import asyncio
import contextvars
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from tools.shell_ops.child import Child
from tools.shell_ops.output import clean
from tools.shell_ops.processes import Traces
from tools.shell_ops.spool import Spool, code_file, open_spool, told_code
from tools.shell_ops.starting import Run, exit_code, spawn, walls

__all__ = ["Body", "Ended", "GoingOn", "Why", "begun"]

Why = Literal["own", "kill", "flood", "session", "found", "unseen", "walls"]
"""own: by itself. kill: bash_kill. flood: it wrote too much. session: with the session. found: with the next one,
as its own had died. unseen: by itself, while nobody watched. walls: its sandbox could not be set up."""
_LOOK_S = 0.1
_TROUBLE_BYTES = 1_000


@dataclass(frozen=True)
class Ended:
    """How one ended."""

    why: Why
    code: int | None = None
    """Exit code, or minus the signal; None where nobody saw it."""
    trouble: str = ""
    """What the walls said that could not be put up."""


class Body(Protocol):
    """The processes of a command."""

    @property
    def traces(self) -> Traces: ...

    async def wait(self, seconds: float) -> bool:
        """Wait this long at most for its first process to end; whether it has."""
        ...

    async def terminate(self) -> None:
        """Ask all of it to end, and wait a little."""
        ...

    async def end_left(self) -> tuple[str, ...]:
        """Ask what the first process left running to end, and wait a little."""
        ...

    def end_all(self) -> None:
        """Kill what is left."""
        ...

    def let_be(self) -> None:
        """Look at it no more."""
        ...


class GoingOn:
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
        ending: Callable[[Why], Ended],
        held: AsyncExitStack,
    ) -> None:
        self._body = body
        self._size = size
        self._most_bytes = most_bytes
        self._ending = ending
        self._held = held
        self._asked: Why | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def traces(self) -> Traces:
        """What its processes are known by."""
        return self._body.traces

    def watch(self, ended: Callable[[Ended], Awaitable[None]]) -> None:
        """Watch it from now on, until it has ended and that was taken in."""
        # In a context of its own: what belongs to the call that started it must not live on with it.
        self._task = asyncio.create_task(self._watch(ended), context=contextvars.Context())

    async def settle(self, seconds: float) -> None:
        """Give it this long to end, as a command does that cannot even begin."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=seconds)

    async def end(self, why: Why) -> None:
        """End it with everything it started; returns when that was taken in."""
        self._asked = self._asked or why
        if self._task is not None:
            await asyncio.shield(self._task)

    async def discard(self) -> None:
        """End one that is not watched yet."""
        self._body.end_all()
        await self._held.aclose()

    async def let_be(self) -> None:
        """Watch it no more, and let it go on."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        self._body.let_be()
        await self._held.aclose()

    async def _watch(self, ended: Callable[[Ended], Awaitable[None]]) -> None:
        while not await self._body.wait(_LOOK_S):
            if self._size() > self._most_bytes:
                self._asked = self._asked or "flood"
            if self._asked is not None:
                await self._body.terminate()
                break
        else:
            await self._body.end_left()
        self._body.end_all()
        outcome = self._ending(self._asked or "own")
        await self._held.aclose()
        await ended(outcome)


async def begun(run: Run, path: Path, *, outlives: bool) -> tuple[GoingOn, Child]:
    """A command of this process, held back; `outlives`: it can go on when this process ends.

    Raises:
        NoSandbox, OSError: it cannot be started.
    """
    async with AsyncExitStack() as opening:
        spool = opening.enter_context(open_spool(path))
        told = os.open(code_file(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        opening.callback(os.close, told)
        confined = await opening.enter_async_context(walls(run.context, "always" if outlives else "session"))
        child = spawn(run, spool, told, confined)
        most = run.context.limits.spool_bytes

        def ending(why: Why) -> Ended:
            return _ending(why, child, run, spool, path)

        return GoingOn(child, lambda: spool.size, most, ending, opening.pop_all()), child
    raise AssertionError("unreachable: nothing here swallows an exception")


def _ending(why: Why, child: Child, run: Run, spool: Spool, path: Path) -> Ended:
    if not child.began:
        return Ended("walls", trouble=clean(spool.read(0, _TROUBLE_BYTES)).strip())
    if why == "flood":
        spool.cut(run.context.limits.spool_bytes)
    return Ended(why, exit_code(child, run, has_told=told_code(path) is not None))
