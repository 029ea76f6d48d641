"""Which calls a stored state leaves open. Reads values only, whatever somebody may have written into them."""

from collections.abc import Mapping
from typing import Any

from graph_agent.calls import FINAL

__all__ = ["asked_last", "is_unjudged", "open_calls"]


def asked_last(values: Mapping[str, Any]) -> list[str]:
    """The calls of the newest message, in the model's order; none where it is not the model's."""
    messages = values.get("messages") or []
    return [str(call["id"]) for call in messages[-1].tool_calls] if messages and messages[-1].type == "ai" else []


def open_calls(values: Mapping[str, Any]) -> list[str]:
    """The calls without an end, those of the newest message that have no record yet among them."""
    records = values.get("calls") or {}
    still_open = [call_id for call_id, call in records.items() if call["status"] not in FINAL]
    return [*still_open, *(call_id for call_id in asked_last(values) if call_id not in records)]


def is_unjudged(values: Mapping[str, Any]) -> bool:
    """Whether no open call has a record yet, nor any other of the newest message."""
    records = values.get("calls") or {}
    return records.keys().isdisjoint([*open_calls(values), *asked_last(values)])
