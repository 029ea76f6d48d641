"""A clock for tests: each look at it is one second later than the one before."""

from datetime import UTC, datetime, timedelta

__all__ = ["SteppingClock"]


class SteppingClock:
    """The port `Clock`, starting at midnight."""

    def __init__(self) -> None:
        self._seconds = 0

    def now(self) -> str:
        moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self._seconds)
        self._seconds += 1
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
