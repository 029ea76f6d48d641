"""Tokens and requests, added up: of model requests, and of calls that made requests of their own."""

from collections.abc import Iterable, Mapping
from typing import Any

from graph_agent.calls import ToolCallInfo
from graph_agent.ports.spending import summed

__all__ = ["spent_by"]


def spent_by(calls: Iterable[ToolCallInfo], given_up: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What calls say they have spent, as `usage` in their metadata; else what is known of it by call id."""
    spent: dict[str, Any] = {}
    for call in calls:
        told: Any = (call.get("metadata") or {}).get("usage") or given_up.get(call["call_id"])
        if isinstance(told, Mapping):
            spent = summed(spent, told)
    return spent
