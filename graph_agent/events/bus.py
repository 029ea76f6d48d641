"""The bus that carries events from the session to whoever shows or records them."""

import logging
from collections.abc import Callable

from graph_agent.events.types import Event

__all__ = ["EventBus", "Subscriber"]

Subscriber = Callable[[int, Event], None]
"""Called with the event's number (1, 2, 3 … per bus, no gaps) and the event, in order, on the publishing thread."""

_log = logging.getLogger(__name__)


class EventBus:
    """Numbers events and hands each to every subscriber, in order of subscription.

    `begins_with` is the type of the event that is to come first: what is published earlier waits, and follows it.
    """

    def __init__(self, begins_with: str | None = None) -> None:
        self._subscribers: list[Subscriber] = []
        self._count = 0
        self._begins_with = begins_with
        self._waiting: list[Event] = []

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Add a subscriber; the returned function takes it off again."""
        self._subscribers.append(subscriber)

        def unsubscribe() -> None:
            if subscriber in self._subscribers:
                self._subscribers.remove(subscriber)

        return unsubscribe

    def publish(self, event: Event) -> None:
        """Deliver an event; a subscriber that fails is logged and never breaks the run or the others."""
        if self._begins_with not in (None, event.type):
            self._waiting.append(event)
            return
        self._deliver(event)
        self.release()

    def release(self) -> None:
        """Deliver what waits for the first event, which will not come any more or has come."""
        self._begins_with = None
        waiting, self._waiting = self._waiting, []
        for event in waiting:
            self._deliver(event)

    def _deliver(self, event: Event) -> None:
        self._count += 1
        for subscriber in tuple(self._subscribers):
            try:
                subscriber(self._count, event)
            except Exception:  # noqa: BLE001 - the one boundary between the run and whoever watches it
                _log.exception("subscriber failed on event %d (%s)", self._count, event.type)
