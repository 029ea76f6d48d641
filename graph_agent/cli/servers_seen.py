"""How the servers of tools are doing, as the events of the session told. Keeps the newest of each."""

from graph_agent.events import Event, EventBus, ServerChanged

__all__ = ["ServersSeen"]


class ServersSeen:
    """A subscriber, shared by the sessions of one chat; each begins with none."""

    def __init__(self) -> None:
        self.now: dict[str, ServerChanged] = {}

    def on(self, bus: EventBus) -> EventBus:
        """The bus of a new session, listened to from now on."""
        self.now = {}
        bus.subscribe(self)
        return bus

    def __call__(self, number: int, event: Event) -> None:  # noqa: ARG002 - the shape of a subscriber
        """Take in one event."""
        if isinstance(event, ServerChanged):
            self.now[event.name] = event
