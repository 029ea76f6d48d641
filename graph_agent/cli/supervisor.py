"""Run the work of a session while listening for signals and a time limit.

Ctrl-C stops the turn. Other signals and the time limit suspend it, so that the next run resumes it.
"""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from graph_agent.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from graph_agent.session.session import Session

__all__ = ["SupervisedResult", "catch_signals", "run_supervised", "run_until_signal"]

T = TypeVar("T")

_EXIT_CODES = {
    signal.SIGINT: ExitCode.INTERRUPTED,
    signal.SIGTERM: ExitCode.TERMINATED,
    signal.SIGHUP: ExitCode.HANGUP,
}


@dataclass(frozen=True, slots=True)
class SupervisedResult(Generic[T]):
    """How supervised work ended."""

    code: ExitCode | None
    """Why it was ended early; None if it was not."""
    result: T | None
    """The return value of the work; None if it was suspended before."""


async def run_supervised(
    session: "Session", work: Coroutine[Any, Any, T], *, timeout_seconds: float | None = None
) -> SupervisedResult[T]:
    """Run work of a session until it returns, Ctrl-C stops it, or a signal or the time limit suspends it."""
    running = asyncio.create_task(work)
    ended_early: asyncio.Future[ExitCode] = asyncio.get_running_loop().create_future()

    def end_early(code: ExitCode) -> None:
        if not ended_early.done():
            ended_early.set_result(code)

    with catch_signals(end_early, *_EXIT_CODES):
        futures: set[asyncio.Future[Any]] = {running, ended_early}
        await asyncio.wait(futures, timeout=timeout_seconds, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            ended_early.cancel()
            return SupervisedResult(None, running.result())
        code = ended_early.result() if ended_early.done() else ExitCode.LIMIT
        await (session.stop() if code is ExitCode.INTERRUPTED else session.shut_down())
    with contextlib.suppress(asyncio.CancelledError):  # Suspended work may end by being cancelled.
        return SupervisedResult(code, await running)
    return SupervisedResult(code, None)


async def run_until_signal(work: Coroutine[Any, Any, T]) -> SupervisedResult[T]:
    """Run work that has no side effects yet, such as opening a session; a signal cancels it.

    A cancelled import can fail with any exception, which is then ignored.
    """
    running = asyncio.create_task(work)
    caught: list[ExitCode] = []

    def cancel(code: ExitCode) -> None:
        caught.append(code)
        running.cancel()

    with catch_signals(cancel, *_EXIT_CODES):
        await asyncio.wait({running})
    code = caught[0] if caught else None
    if running.cancelled() or (caught and running.exception() is not None):
        return SupervisedResult(code, None)
    return SupervisedResult(code, running.result())


@contextlib.contextmanager
def catch_signals(on_signal: Callable[[ExitCode], None], *signals: signal.Signals) -> Iterator[None]:
    """Call back in the event loop for each of these signals, with the exit code it asks for."""
    loop = asyncio.get_running_loop()
    previous = {number: signal.getsignal(number) for number in signals}
    for number in signals:
        loop.add_signal_handler(number, on_signal, _EXIT_CODES[number])
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
            # The loop leaves the system's default handler, which would end the process without its exit code.
            signal.signal(number, previous[number])
