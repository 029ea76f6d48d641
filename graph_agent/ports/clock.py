"""The clock that records use, and the ids of sub-agent threads, derived from parent and call."""

import hashlib
from datetime import UTC, datetime
from typing import Protocol

__all__ = ["Clock", "SystemClock", "moved_sub_agent_id", "normalize_time", "sub_agent_id"]


class Clock(Protocol):
    """Where nodes and stores get the time from."""

    def now(self) -> str:
        """ISO-8601 UTC with milliseconds, e.g. `2026-11-28T00:12:03.456Z`."""
        ...


def normalize_time(moment: str) -> str:
    """An ISO-8601 time of any precision and zone in the form of `Clock.now`, so that the two compare as text.

    Raises:
        ValueError: it is no such time.
    """
    return _written(datetime.fromisoformat(moment))


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class SystemClock:
    """The machine's own clock."""

    def now(self) -> str:
        """See `Clock.now`."""
        return _written(datetime.now(UTC))


def sub_agent_id(parent_thread: str, call_id: str, undone: int) -> str:
    """The id of a sub-agent's thread: every run finds it; a call that runs again after a rewind gets another."""
    text = "\0".join((parent_thread, call_id, str(undone)))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def moved_sub_agent_id(child: str, call_id: str, attempts: int, of: tuple[str, str]) -> str | None:
    """The id of a sub-agent's thread under another parent; None where it is none of this call.

    Args:
        attempts: how many attempts at the call there were, of which a rewind may have undone some.
        of: the thread of its parent, and the other one.
    """
    parent, other = of
    for undone in range(attempts + 1):
        if child == sub_agent_id(parent, call_id, undone):
            return sub_agent_id(other, call_id, undone)
    return None
