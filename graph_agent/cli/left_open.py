"""What a headless run leaves open, read from the database once its session has let go of the thread."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graph_agent.cli.views.approvals import approval_json
from graph_agent.cli.views.calls import call_json
from graph_agent.errors import AgentError
from graph_agent.inspect import Reader
from graph_agent.ports.spending import told_usage

__all__ = ["LeftOpen", "left_open", "shared_ids"]


@dataclass(frozen=True, slots=True)
class LeftOpen:
    """What waits for a decision in a thread that nobody holds."""

    checkpoint_id: str | None = None
    pending_approvals: list[dict[str, Any]] = field(default_factory=list)
    interrupted_calls: list[dict[str, Any]] = field(default_factory=list)
    usage: dict[str, Any] = field(default_factory=lambda: told_usage(None))
    """What the turn used until then."""


def left_open(database: Path | None, thread_id: str | None) -> LeftOpen:
    """What the thread waits for; nothing where that cannot be read, as the run has more important news then."""
    if database is None or thread_id is None:
        return LeftOpen()
    try:
        with Reader.open(database) as reader:
            checkpoint_id, shared = reader.thread(thread_id).checkpoint_id, reader.shared_call_ids()
            waiting = [view for view in reader.approvals() if view.thread_id == thread_id and view.is_waiting]
            broken = [view for view in reader.interrupted() if view.thread_id == thread_id and view.is_interrupted]
            usage = _usage(reader, thread_id)
    except AgentError:
        return LeftOpen()
    return LeftOpen(
        checkpoint_id,
        [approval_json(view, shared) for view in waiting],
        [call_json(view) for view in broken],
        usage,
    )


def _usage(reader: Reader, thread_id: str) -> dict[str, Any]:
    try:
        turn = reader.inspection(thread_id).state.values.get("turn")
    except AgentError:
        turn = None
    return told_usage(turn.get("usage") if isinstance(turn, dict) else None)


def shared_ids(database: Path | None) -> frozenset[str]:
    """Call ids that occur in several threads; none where that cannot be read."""
    if database is None:
        return frozenset()
    try:
        with Reader.open(database) as reader:
            return reader.shared_call_ids()
    except AgentError:
        return frozenset()
