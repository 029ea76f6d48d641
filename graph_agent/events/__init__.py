"""Frozen facts about a run, and the bus that carries them."""

from graph_agent.events.bus import EventBus, Subscriber
from graph_agent.events.facts import (
    CallAnswered,
    CallArrived,
    CallEnded,
    CallPlanned,
    CallProgressed,
    CallStarted,
    Event,
    ModelReplied,
    SessionOpened,
    StepStarted,
    TextArrived,
    TurnEnded,
    TurnStarted,
    Warned,
    event_from_json,
    event_to_json,
)

__all__ = [
    "CallAnswered",
    "CallArrived",
    "CallEnded",
    "CallPlanned",
    "CallProgressed",
    "CallStarted",
    "Event",
    "EventBus",
    "ModelReplied",
    "SessionOpened",
    "StepStarted",
    "Subscriber",
    "TextArrived",
    "TurnEnded",
    "TurnStarted",
    "Warned",
    "event_from_json",
    "event_to_json",
]
