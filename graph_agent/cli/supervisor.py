"""Runs the work of a session while listening for signals and a time limit.

A stop by the user ends the turn for good; a termination or a time limit suspends it so that a later life goes on.
"""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from graph_agent.cli.chat.conversation import Conversation
from graph_agent.cli.exit_codes import ExitCode

__all__ = ["SupervisedResult", "catch_signals", "run_supervised", "run_until_signal"]

T = TypeVar("T")

_CODES = {
    signal.SIGINT: ExitCode.INTERRUPTED,
    signal.SIGTERM: ExitCode.TERMINATED,
    signal.SIGHUP: ExitCode.HANGUP,
}


@dataclass(frozen=True, slots=True)
class SupervisedResult(Generic[T]):
    """How supervised work ended."""

    code: ExitCode | None
    """Why it was cut short; None when it came to its own end."""
    result: T | None
    """What the work returned; None when it was suspended before it could."""


@contextlib.contextmanager
def catch_signals(caught: Callable[[ExitCode], None], *signals: signal.Signals) -> Iterator[None]:
    """Call back in the event loop for each of these signals, with the exit code it asks for."""
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in signals}
    for number in signals:
        loop.add_signal_handler(number, caught, _CODES[number])
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
            # The loop leaves the system's default behind, which ends the process without its exit code.
            signal.signal(number, before[number])


async def run_until_signal(work: Coroutine[Any, Any, T]) -> SupervisedResult[T]:
    """Run work that nothing rests on yet to its end; a signal breaks it off, however that fails.

    Not by an exception out of nowhere: libraries that are being loaded turn that into errors of their own.
    """
    running = asyncio.create_task(work)
    caught: list[ExitCode] = []

    def catch(code: ExitCode) -> None:
        caught.append(code)
        running.cancel()

    with catch_signals(catch, *_CODES):
        await asyncio.wait({running})
    if running.cancelled() or (caught and running.exception() is not None):
        return SupervisedResult(caught[0] if caught else None, None)
    return SupervisedResult(caught[0] if caught else None, running.result())


async def run_supervised(
    session: Conversation, work: Coroutine[Any, Any, T], *, timeout_seconds: float | None = None
) -> SupervisedResult[T]:
    """Run the work to its end, to the user's stop, or to a suspension."""
    running = asyncio.create_task(work)
    cut: asyncio.Future[ExitCode] = asyncio.get_running_loop().create_future()

    def catch(code: ExitCode) -> None:
        if not cut.done():
            cut.set_result(code)

    with catch_signals(catch, *_CODES):
        waited: set[asyncio.Future[Any]] = {running, cut}
        await asyncio.wait(waited, timeout=timeout_seconds, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            cut.cancel()
            return SupervisedResult(None, running.result())
        code = cut.result() if cut.done() else ExitCode.LIMIT
        if code is ExitCode.INTERRUPTED:
            await session.stop()
        else:
            await session.shut_down()
    return SupervisedResult(code, await _outcome(running))


async def _outcome(running: asyncio.Task[T]) -> T | None:
    """Wait for work that was told to end; suspended work may end by being cancelled."""
    with contextlib.suppress(asyncio.CancelledError):
        return await running
    return None
