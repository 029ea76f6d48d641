"""Changes of call records, refused before they are written when the transition table has no such row."""

from typing import Any, cast

from graph_agent.calls import CallStatus, ToolCallInfo, require_allowed
from graph_agent.events import CallEnded

__all__ = ["change_of", "ended_event", "moved"]


def moved(call: ToolCallInfo, status: CallStatus, **fields: Any) -> ToolCallInfo:
    """The record after a change of status.

    Raises:
        ForbiddenTransition: the transition table has no such row.
    """
    require_allowed(call["call_id"], call["status"], status)
    changed = {**call, "status": status, **fields}
    return cast("ToolCallInfo", changed)


def change_of(before: ToolCallInfo | None, after: ToolCallInfo) -> dict[str, Any]:
    """What to write so that `before` becomes `after`: the whole record for a new one, else only what differs."""
    if before is None:
        return dict(after)
    changed = {key: value for key, value in after.items() if key not in before or before[key] != value}  # type: ignore[literal-required]  # keys come from the record itself
    return {**changed, "status": after["status"], "attempt": after.get("attempt", 1)}


def ended_event(call: ToolCallInfo) -> CallEnded:
    """The event that tells what became of a call."""
    return CallEnded(
        call_id=call["call_id"],
        tool_name=call["tool_name"],
        status=call["status"],
        display=call.get("display", ""),
        output=call["result"] or "",
        error=call["error_msg"],
        reason=call.get("reason", ""),
        metadata=call.get("metadata", {}),
    )
