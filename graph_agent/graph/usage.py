"""Tokens and requests, added up: of model requests, and of calls that made requests of their own."""

from collections.abc import Iterable, Mapping
from typing import Any

from graph_agent.calls import ToolCallInfo
from graph_agent.ports.spending import summed

__all__ = ["spent_by"]


def spent_by(calls: Iterable[ToolCallInfo]) -> dict[str, Any]:
    """What calls say they have spent, as `usage` in their metadata."""
    spent: dict[str, Any] = {}
    for call in calls:
        told: Any = (call.get("metadata") or {}).get("usage")
        if isinstance(told, Mapping):
            spent = summed(spent, told)
    return spent
