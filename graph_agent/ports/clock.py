"""The time, as records hold it."""

from datetime import UTC, datetime
from typing import Protocol

__all__ = ["Clock", "SystemClock"]


class Clock(Protocol):
    """Where nodes and stores get the time from."""

    def now(self) -> str:
        """ISO-8601 UTC with milliseconds, e.g. `2026-11-28T00:12:03.456Z`."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> str:
        """See `Clock.now`."""
        return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
