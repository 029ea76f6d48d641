"""Asks tools of others what they say of a call. Whatever they do then, the program waits for them a moment only.

A plain method runs in a thread of its own that nobody waits for, a coroutine in the loop that such tools share.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from traceback import TracebackException
from typing import TypeVar

from tools.aside import Aside, End, told

__all__ = ["ANSWER_S", "Unanswered", "asked", "asked_there", "said"]

_log = logging.getLogger(__name__)

T = TypeVar("T")

_NO_TEXT = "<exception str() failed>"
ANSWER_S = 10.0
"""How long a tool may think about what it says of a call, before anything is done."""


class Unanswered(Exception):
    """A tool did not say what it was asked: it failed, or takes too long; the message is for the model."""


async def asked(
    tool_name: str,
    question: Callable[[], T],
    *,
    passing: tuple[type[Exception], ...] = (),
    seconds: float | None = None,
) -> T:
    """What a plain method gives.

    Raises:
        Unanswered: nothing in time, or an error other than those that are passed on.
    """
    here = asyncio.get_running_loop()
    answered: asyncio.Future[End[T]] = here.create_future()

    def ask() -> None:
        end = End[T]()
        with end:
            end.result = question()
        told(here, partial(_answer, answered, end))

    threading.Thread(target=ask, name=f"what {tool_name} says", daemon=True).start()
    return await _in_time(tool_name, answered, passing, seconds)


def _answer(answered: "asyncio.Future[End[T]]", end: End[T]) -> None:
    if not answered.done():
        answered.set_result(end)


async def asked_there(
    tool_name: str,
    question: Callable[[], Awaitable[T]],
    *,
    passing: tuple[type[Exception], ...] = (),
    seconds: float | None = None,
) -> T:
    """What a coroutine gives.

    Raises:
        Unanswered: nothing in time, or an error other than those that are passed on.
    """
    return await _in_time(tool_name, Aside().ended(question), passing, seconds)


async def _in_time(
    tool_name: str, answer: Awaitable[End[T]], passing: tuple[type[Exception], ...], seconds: float | None
) -> T:
    limit = ANSWER_S if seconds is None else seconds
    try:
        async with asyncio.timeout(limit):
            end = await answer
    except TimeoutError:
        _log.warning("the tool %s did not answer within %g s", tool_name, limit)
        raise Unanswered(
            f"{tool_name} did not say within {limit:g} seconds what it makes of this call, so nothing was done. "
            "Do without it."
        ) from None
    if end.error is None or isinstance(end.error, passing):
        return end.value()
    _log.error("the tool %s failed when it was asked about a call", tool_name, exc_info=end.error)
    told_by = f"{type(end.error).__name__}: {said(end.error)}"
    raise Unanswered(f"{tool_name} failed when it was asked about this call: {told_by}. Nothing was done.")


def said(error: BaseException) -> str:
    """The error's own text, where it can be had."""
    # Its text is the tool's own code as well, which this makes without running into what that does.
    text = str(TracebackException(type(error), error, None))
    return "it cannot say why" if text == _NO_TEXT else text
