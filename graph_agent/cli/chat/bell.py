"""Rings the terminal's bell when a person is waited for: a question is open, or a long turn has ended."""

import sys
import time
from collections.abc import Callable

from graph_agent.events import Event, EventBus, TurnEnded, TurnStarted

__all__ = ["Bell"]

_LONG_SECONDS = 20.0
_QUESTIONS = ("awaiting_approval", "interrupted")


class Bell:
    """A subscriber, shared by the sessions of one chat."""

    def __init__(self, is_wanted: Callable[[], bool], ring: Callable[[], None] | None = None) -> None:
        self._is_wanted = is_wanted
        """Asked when there is something to ring for: what the settings say is not read before."""
        self._ring = ring or _ring
        self._since = time.monotonic()

    def on(self, bus: EventBus) -> EventBus:
        """The bus of a new session, listened to from now on."""
        bus.subscribe(self)
        return bus

    def __call__(self, number: int, event: Event) -> None:  # noqa: ARG002 - the shape of a subscriber
        """Take in one event."""
        if isinstance(event, TurnStarted):
            self._since = time.monotonic()
        elif isinstance(event, TurnEnded):
            is_long = time.monotonic() - self._since >= _LONG_SECONDS
            if (is_long or event.status in _QUESTIONS) and self._is_wanted():
                self._ring()
            self._since = time.monotonic()


def _ring() -> None:
    sys.stdout.write("\a")
    sys.stdout.flush()
