"""Making a conversation shorter because a person wants it: a turn of its own, in which nothing else is done."""

from graph_agent.events import TurnStarted
from graph_agent.graph.reasoning import COMPACT_ONLY
from graph_agent.session.api import Rest
from graph_agent.session.drive import Drive
from graph_agent.session.parts import SessionParts

__all__ = ["compacted"]


async def compacted(drive: Drive, parts: SessionParts) -> Rest:
    """Compact a thread at rest. The turn it came to rest with stays its last one, with what came of it."""
    position = await parts.run.position()
    if not position.exists:
        return await drive.rest("done", position.values)
    turn = {COMPACT_ONLY: dict(position.values.get("turn") or {})}
    parts.bus.publish(TurnStarted())
    return await drive.run(lambda life: parts.run.begin({"turn": turn}, life))
