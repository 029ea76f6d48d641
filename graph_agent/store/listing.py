"""What the list of threads says about a checkpoint, read from the checkpoint alone, without the graph."""

from collections.abc import Iterator, Mapping
from typing import Any

from graph_agent.ports import clock_time
from graph_agent.store.jsontext import json_text, storable

__all__ = ["next_nodes", "nodes_after", "outcome", "timestamp", "usage"]

_BRANCH = "branch:to:"
_START = "__start__"
_SENDS = "__pregel_tasks"


def timestamp(value: Any) -> str:
    """A checkpoint's time in the form all tables use: ISO-8601 UTC with milliseconds."""
    try:
        return clock_time(value)
    except (TypeError, ValueError):
        return storable(str(value or ""))


def outcome(checkpoint: Mapping[str, Any]) -> str:
    """How the turn ended, as the state says; empty while it runs."""
    turn = _part(_part(checkpoint, "channel_values"), "turn")
    ended = turn.get("outcome")
    return storable(ended) if isinstance(ended, str) else ""


def usage(checkpoint: Mapping[str, Any]) -> str:
    """JSON object of what the requests of the thread used, as the state says."""
    return json_text(dict(_part(_part(checkpoint, "channel_values"), "usage")))


def next_nodes(checkpoint: Mapping[str, Any]) -> str:
    """JSON list of the nodes that run next."""
    return json_text(nodes_after(checkpoint))


def nodes_after(checkpoint: Mapping[str, Any]) -> list[str]:
    """The nodes that run next: those sent to, then those with a trigger they have not seen."""
    values = _part(checkpoint, "channel_values")
    sends = values.get(_SENDS) or []
    sent = [str(send.node) for send in sends if hasattr(send, "node")] if isinstance(sends, list | tuple) else []
    return [*dict.fromkeys(sent), *sorted(_triggered(checkpoint, values))]


def _triggered(checkpoint: Mapping[str, Any], values: Mapping[str, Any]) -> Iterator[str]:
    versions = _part(checkpoint, "channel_versions")
    seen = _part(checkpoint, "versions_seen")
    for channel in map(str, values):
        if channel != _START and not channel.startswith(_BRANCH):
            continue
        node = channel.removeprefix(_BRANCH)
        last_seen = _part(seen, node).get(channel)
        # Versions are text of equal width, or numbers; text of both sorts as the framework sorts them.
        if last_seen is None or str(versions.get(channel, "")) > str(last_seen):
            yield node


def _part(whole: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = whole.get(name)
    return part if isinstance(part, Mapping) else {}
