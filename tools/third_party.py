"""Runs the coroutines of tools of others beside the program's own loop, which one that blocks would halt.

All of a process share one further loop, so that what a plug-in keeps between its calls stays usable. A loop that is
found blocked is left behind with what blocks it, and the next call gets another.

Asks tools of others what they say of a call. Whatever they do then, the program waits for them a moment only.

A plain method runs in a thread of its own that nobody waits for, a coroutine in the loop that such tools share.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from traceback import TracebackException
from types import TracebackType
from typing import Any, Generic, TypeVar

from tools.context import FileStates, ProcessRecorder, Progress, ToolContext

__all__ = [
    "QUERY_TIMEOUT_S",
    "Outcome",
    "ToolQueryFailed",
    "ToolThread",
    "call_soon",
    "error_text",
    "query_tool",
    "query_tool_async",
]

T = TypeVar("T")

_log = logging.getLogger(__name__)

_PATIENCE_S = 1.0
"""How long the loop may take to turn to a new call; one that takes longer is blocked by another tool."""

_GRACE_S = 1.0
"""What a call gets to end that was told to; one that blocks does not even hear it."""


class ToolThread:
    """One call run aside."""

    def __init__(self) -> None:
        self.is_still_running = False
        """Whether it was told to stop and did not: then it goes on, and so may its effects."""

    async def run(self, make: Callable[[], Awaitable[T]]) -> T:
        """What the coroutine returns or raises; cancelled, it is cancelled there, and waited for a little."""
        return (await self.ended(make)).value()

    async def ended(self, make: Callable[[], Awaitable[T]]) -> "Outcome[T]":
        """How the coroutine ended; see `run`."""
        other = await _free_loop()
        here, over = asyncio.get_running_loop(), asyncio.Event()
        end = Outcome[T]()

        async def work() -> None:
            with end:
                end.result = await make()
            call_soon(here, over.set)

        tasks: list[asyncio.Task[None]] = []
        call_soon(other, lambda: tasks.append(other.create_task(work())))
        try:
            await over.wait()
        except asyncio.CancelledError:
            call_soon(other, lambda: [task.cancel() for task in tasks])
            await self._last_moment(over, other)
            raise
        return end

    async def _last_moment(self, over: asyncio.Event, other: asyncio.AbstractEventLoop) -> None:
        waiting = asyncio.ensure_future(over.wait())
        await asyncio.wait({waiting}, timeout=_GRACE_S)
        if not waiting.done():
            waiting.cancel()
            self.is_still_running = True
            _log.warning("a tool does not stop; it is left behind")
            _HOME.leave(other)

    def context(self, context: ToolContext) -> ToolContext:
        """The surroundings of the call as they can be used from there."""
        here = asyncio.get_running_loop()

        def progress(news: Progress) -> None:
            call_soon(here, lambda: context.progress(news))

        states = _FarStates(here, context.file_states)
        call_log = None if context.processes is None else _FarLedger(here, context.processes)
        return replace(context, progress=progress, file_states=states, processes=call_log)


class Outcome(Generic[T]):
    """How a coroutine ended, carried from one loop to the other: SystemExit, raised there, would end it for all."""

    def __init__(self) -> None:
        self.result: T | None = None
        self.error: BaseException | None = None

    def __enter__(self) -> None:
        """What follows is carried."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.error = error
        return True

    def value(self) -> T:
        """What came of it, or what it raised."""
        if self.error is not None:
            raise self.error
        return self.result  # type: ignore[return-value]  # without an error there is one, and it may be None


class _Home:
    """The loop they share, in a thread that the end of the process does not wait for."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=_live, args=(self._loop,), name="tools of others", daemon=True).start()
        return self._loop

    def leave(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._loop is loop:
            self._loop = None
            loop.call_soon_threadsafe(loop.stop)


def _live(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    # It was left behind, with calls perhaps that only waited for their turn.
    if left := asyncio.all_tasks(loop):
        loop.run_until_complete(asyncio.wait(left))
    loop.close()


_HOME = _Home()


async def _free_loop() -> asyncio.AbstractEventLoop:
    """The loop they share, or a new one in its place where one of them blocks it; what runs there waits on."""
    here = asyncio.get_running_loop()
    while True:
        loop, turned = _HOME.loop(), asyncio.Event()
        call_soon(loop, partial(call_soon, here, turned.set))
        try:
            await asyncio.wait_for(turned.wait(), _PATIENCE_S)
        except TimeoutError:
            _log.warning("a tool blocks the loop of all tools of others; new calls get another")
            _HOME.leave(loop)
        else:
            return loop


@dataclass(frozen=True)
class _FarStates:
    here: asyncio.AbstractEventLoop
    states: FileStates

    async def get(self, thread_id: str, path: str) -> str | None:
        return await _over(self.here, self.states.get(thread_id, path))

    async def set(self, thread_id: str, path: str, sha256: str) -> None:
        await _over(self.here, self.states.set(thread_id, path, sha256))


@dataclass(frozen=True)
class _FarLedger:
    here: asyncio.AbstractEventLoop
    call_log: ProcessRecorder

    async def record(self, context: ToolContext, group: int, start_time: str) -> None:
        await _over(self.here, self.call_log.record(context, group, start_time))


async def _over(there: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, there))


def call_soon(loop: asyncio.AbstractEventLoop, news: Callable[[], object]) -> None:
    """Have it happen in the loop, unless that is over: nobody waits for it then."""
    try:
        loop.call_soon_threadsafe(news)
    except RuntimeError:
        _log.debug("a tool had news after the end")


_NO_TEXT = "<exception str() failed>"
QUERY_TIMEOUT_S = 10.0
"""How long a tool may think about what it says of a call, before anything is done."""


class ToolQueryFailed(Exception):
    """A tool did not say what it was asked: it failed, or takes too long; the message is for the model."""


async def query_tool(
    tool_name: str,
    question: Callable[[], T],
    *,
    reraise: tuple[type[Exception], ...] = (),
    seconds: float | None = None,
) -> T:
    """What a plain method gives.

    Raises:
        Unanswered: nothing in time, or an error other than those that are passed on.
    """
    here = asyncio.get_running_loop()
    answered: asyncio.Future[Outcome[T]] = here.create_future()

    def ask() -> None:
        end = Outcome[T]()
        with end:
            end.result = question()
        call_soon(here, partial(_answer, answered, end))

    threading.Thread(target=ask, name=f"what {tool_name} says", daemon=True).start()
    return await _in_time(tool_name, answered, reraise, seconds)


def _answer(answered: "asyncio.Future[Outcome[T]]", end: Outcome[T]) -> None:
    if not answered.done():
        answered.set_result(end)


async def query_tool_async(
    tool_name: str,
    question: Callable[[], Awaitable[T]],
    *,
    reraise: tuple[type[Exception], ...] = (),
    seconds: float | None = None,
) -> T:
    """What a coroutine gives.

    Raises:
        Unanswered: nothing in time, or an error other than those that are passed on.
    """
    return await _in_time(tool_name, ToolThread().ended(question), reraise, seconds)


async def _in_time(
    tool_name: str, answer: Awaitable[Outcome[T]], reraise: tuple[type[Exception], ...], seconds: float | None
) -> T:
    limit = QUERY_TIMEOUT_S if seconds is None else seconds
    try:
        async with asyncio.timeout(limit):
            end = await answer
    except TimeoutError:
        _log.warning("the tool %s did not answer within %g s", tool_name, limit)
        raise ToolQueryFailed(
            f"{tool_name} did not say within {limit:g} seconds what it makes of this call, so nothing was done. "
            "Do without it."
        ) from None
    if end.error is None or isinstance(end.error, reraise):
        return end.value()
    _log.error("the tool %s failed when it was asked about a call", tool_name, exc_info=end.error)
    told_by = f"{type(end.error).__name__}: {error_text(end.error)}"
    raise ToolQueryFailed(f"{tool_name} failed when it was asked about this call: {told_by}. Nothing was done.")


def error_text(error: BaseException) -> str:
    """The error's own text, where it can be had."""
    # Its text is the tool's own code as well, which this makes without running into what that does.
    text = str(TracebackException(type(error), error, None))
    return "it cannot say why" if text == _NO_TEXT else text
