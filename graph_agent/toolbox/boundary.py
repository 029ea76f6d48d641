"""The one boundary between a tool's bugs and whatever is done with it besides running it."""

import logging
from collections.abc import Awaitable
from typing import TypeVar

from graph_agent.errors import ControlFlow

__all__ = ["guarded"]

_log = logging.getLogger(__name__)

T = TypeVar("T")


async def guarded(work: Awaitable[T], fallback: T) -> T:
    """What the work gives, or the fallback where the tool has a bug; its traceback goes to the log."""
    try:
        return await work
    except ControlFlow:
        raise
    except Exception:  # noqa: BLE001 - the one boundary between a tool's bugs and planning or recovery
        _log.exception("a tool failed outside of its execution")
        return fallback
