"""Clocks for tests: one that stands still, and one that is a second later each time."""

from datetime import UTC, datetime, timedelta

__all__ = ["NOW", "FixedClock", "SteppingClock"]

NOW = "2026-11-28T12:00:00.000Z"


class FixedClock:
    """The port `Clock`, always at `NOW`."""

    def now(self) -> str:
        return NOW


class SteppingClock:
    """The port `Clock`, starting at midnight."""

    def __init__(self) -> None:
        self._seconds = 0

    def now(self) -> str:
        moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self._seconds)
        self._seconds += 1
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
