"""Runs the code of third-party tools so that it cannot block the program's event loop.

Coroutines run in a second event loop that all such tools of a process share, so that what a plug-in keeps between
its calls stays usable. A blocked loop is abandoned together with what blocks it, and the next call gets a new one.
Plain methods run in a thread of their own, which the program waits for only for a limited time.
"""

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Any, Generic, TypeVar

from tools.base import FileStates, ProcessRecorder, Progress, ToolContext
from tools.result import error_text

__all__ = ["QUERY_TIMEOUT_S", "ToolQueryFailed", "ToolThread", "finish", "query_tool", "query_tool_async"]

T = TypeVar("T")

QUERY_TIMEOUT_S = 10.0
"""How long a tool may take to answer about a call before anything is done."""

_LOOP_TIMEOUT_S = 1.0
"""How long the loop may take to start a new call; one that takes longer is blocked by another tool."""
_GRACE_S = 1.0
"""How long a cancelled call may take to end; one that blocks does not even notice."""

_log = logging.getLogger(__name__)


class ToolQueryFailed(Exception):
    """A tool did not answer about a call: it failed, or took too long. The message is for the model."""


async def query_tool(
    tool_name: str,
    query: Callable[[], T],
    *,
    reraise: tuple[type[Exception], ...] = (),
    seconds: float | None = None,
) -> T:
    """What a plain function of the tool returns.

    Raises:
        ToolQueryFailed: no answer in time, or an error other than `reraise`.
    """
    here = asyncio.get_running_loop()
    answer: asyncio.Future[_Outcome[T]] = here.create_future()

    def work() -> None:
        outcome = _Outcome[T]()
        with outcome:
            outcome.result = query()
        _call_soon(here, lambda: None if answer.done() else answer.set_result(outcome))

    threading.Thread(target=work, name=f"query of {tool_name}", daemon=True).start()
    return await _await_answer(tool_name, answer, reraise, seconds)


async def query_tool_async(
    tool_name: str,
    query: Callable[[], Awaitable[T]],
    *,
    reraise: tuple[type[Exception], ...] = (),
    seconds: float | None = None,
) -> T:
    """What a coroutine of the tool returns.

    Raises:
        ToolQueryFailed: no answer in time, or an error other than `reraise`.
    """
    return await _await_answer(tool_name, ToolThread().outcome(query), reraise, seconds)


async def _await_answer(
    tool_name: str, answer: "Awaitable[_Outcome[T]]", reraise: tuple[type[Exception], ...], seconds: float | None
) -> T:
    limit = QUERY_TIMEOUT_S if seconds is None else seconds
    try:
        async with asyncio.timeout(limit):
            outcome = await answer
    except TimeoutError:
        _log.warning("the tool %s did not answer within %g s", tool_name, limit)
        raise ToolQueryFailed(
            f"{tool_name} did not answer about this call within {limit:g} seconds, so nothing was done. "
            "Continue without it."
        ) from None
    if outcome.error is None or isinstance(outcome.error, reraise):
        return outcome.value()
    _log.error("the tool %s failed when it was asked about a call", tool_name, exc_info=outcome.error)
    cause = f"{type(outcome.error).__name__}: {error_text(outcome.error)}"
    raise ToolQueryFailed(f"{tool_name} failed when it was asked about this call: {cause}. Nothing was done.")


def finish(made: object) -> object:
    """What a factory made; if that is a coroutine, its result, from the event loop of third-party tools."""
    if not inspect.isawaitable(made):
        return made

    async def wait() -> object:
        return await made

    return asyncio.run_coroutine_threadsafe(wait(), _SHARED.loop()).result(QUERY_TIMEOUT_S)


class ToolThread:
    """Runs one call in the event loop that third-party tools share."""

    def __init__(self) -> None:
        self.is_still_running = False
        """The call was cancelled but did not end: it goes on running, and may still have effects."""

    async def run(self, make: Callable[[], Awaitable[T]]) -> T:
        """What the coroutine returns or raises; a cancellation is passed on, and its end awaited for a moment."""
        return (await self.outcome(make)).value()

    async def outcome(self, make: Callable[[], Awaitable[T]]) -> "_Outcome[T]":
        """How the coroutine ended; see `run`."""
        other = await _responsive_loop()
        here, done = asyncio.get_running_loop(), asyncio.Event()
        outcome = _Outcome[T]()

        async def work() -> None:
            with outcome:
                outcome.result = await make()
            _call_soon(here, done.set)

        tasks: list[asyncio.Task[None]] = []
        _call_soon(other, lambda: tasks.append(other.create_task(work())))
        try:
            await done.wait()
        except asyncio.CancelledError:
            _call_soon(other, lambda: [task.cancel() for task in tasks])
            try:
                await asyncio.wait_for(done.wait(), _GRACE_S)
            except TimeoutError:
                self.is_still_running = True
                _log.warning("a tool does not stop; its thread is abandoned")
                _SHARED.abandon(other)
            raise
        return outcome

    def context(self, context: ToolContext) -> ToolContext:
        """The context of the call, usable from the other loop."""
        here = asyncio.get_running_loop()

        def progress(news: Progress) -> None:
            _call_soon(here, lambda: context.progress(news))

        states = _RemoteFileStates(here, context.file_states)
        processes = None if context.processes is None else _RemoteProcessRecorder(here, context.processes)
        return replace(context, progress=progress, file_states=states, processes=processes)


class _Outcome(Generic[T]):
    """A result or an error, carried between loops: SystemExit raised in the other loop would end it."""

    def __init__(self) -> None:
        self.result: T | None = None
        self.error: BaseException | None = None

    def __enter__(self) -> None:
        """Record what the block raises."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.error = error
        return True

    def value(self) -> T:
        """The result; raises the error instead if there is one."""
        if self.error is not None:
            raise self.error
        return self.result  # type: ignore[return-value]  # without an error there is one, and it may be None


class _SharedLoop:
    """The event loop of third-party tools, in a thread that the end of the process does not wait for."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = loop = asyncio.new_event_loop()

            def run() -> None:
                loop.run_forever()
                # The loop was abandoned, perhaps with calls that were only waiting to start.
                if left := asyncio.all_tasks(loop):
                    loop.run_until_complete(asyncio.wait(left))
                loop.close()

            threading.Thread(target=run, name="third-party tools", daemon=True).start()
        return self._loop

    def abandon(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._loop is loop:
            self._loop = None
            loop.call_soon_threadsafe(loop.stop)


_SHARED = _SharedLoop()


async def _responsive_loop() -> asyncio.AbstractEventLoop:
    """The shared loop, or a new one if a tool blocks it."""
    here = asyncio.get_running_loop()
    while True:
        loop, started = _SHARED.loop(), asyncio.Event()
        _call_soon(loop, partial(_call_soon, here, started.set))
        try:
            await asyncio.wait_for(started.wait(), _LOOP_TIMEOUT_S)
        except TimeoutError:
            _log.warning("a tool blocks the event loop of third-party tools; new calls get another one")
            _SHARED.abandon(loop)
        else:
            return loop


@dataclass(frozen=True)
class _RemoteFileStates:
    home: asyncio.AbstractEventLoop
    states: FileStates

    async def get(self, thread_id: str, path: str) -> str | None:
        return await _run_in(self.home, self.states.get(thread_id, path))

    async def set(self, thread_id: str, path: str, sha256: str) -> None:
        await _run_in(self.home, self.states.set(thread_id, path, sha256))


@dataclass(frozen=True)
class _RemoteProcessRecorder:
    home: asyncio.AbstractEventLoop
    recorder: ProcessRecorder

    async def record(self, context: ToolContext, group: int, start_time: str) -> None:
        await _run_in(self.home, self.recorder.record(context, group, start_time))


async def _run_in(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


def _call_soon(loop: asyncio.AbstractEventLoop, action: Callable[[], object]) -> None:
    """Schedule it in the loop; if that is closed, nobody waits for it any more."""
    try:
        loop.call_soon_threadsafe(action)
    except RuntimeError:
        _log.debug("a tool reported something after the end")
