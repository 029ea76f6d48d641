"""Tokens and requests, added up: of model requests, and of calls that made requests of their own."""

from collections.abc import Iterable, Mapping
from typing import Any

from graph_agent.calls import ToolCallInfo
from graph_agent.ports.spending import summed

__all__ = ["spent_by", "spent_of_turn"]


def spent_by(calls: Iterable[ToolCallInfo], given_up: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What calls say they have spent, as `usage` in their metadata; else what is known of it by call id."""
    return _spent(calls, given_up, ("usage",))


def spent_of_turn(calls: Iterable[ToolCallInfo], given_up: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """As far as it counts for the turn: a call that a person let go on with a fresh budget says so itself."""
    return _spent(calls, given_up, ("turn_usage", "usage"))


def _spent(
    calls: Iterable[ToolCallInfo], given_up: Mapping[str, Mapping[str, Any]], names: tuple[str, ...]
) -> dict[str, Any]:
    spent: dict[str, Any] = {}
    for call in calls:
        metadata = call.get("metadata") or {}
        told: Any = next((metadata[name] for name in names if metadata.get(name)), given_up.get(call["call_id"]))
        if isinstance(told, Mapping):
            spent = summed(spent, told)
    return spent
