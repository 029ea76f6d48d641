"""The time, as records hold it."""

from datetime import UTC, datetime
from typing import Protocol

__all__ = ["Clock", "SystemClock", "clock_time"]


class Clock(Protocol):
    """Where nodes and stores get the time from."""

    def now(self) -> str:
        """ISO-8601 UTC with milliseconds, e.g. `2026-11-28T00:12:03.456Z`."""
        ...


def clock_time(moment: str) -> str:
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
