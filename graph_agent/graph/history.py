"""What makes a conversation valid for the next request, and how records change and are reported to the model."""

from typing import TYPE_CHECKING, Any, assert_never, cast

from graph_agent.calls import CallStatus, ToolCallInfo, require_allowed
from graph_agent.errors import InternalError, InvalidHistory
from graph_agent.events import ToolCallFinished

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import AnyMessage


__all__ = [
    "PAUSED",
    "TYPED",
    "change_of",
    "ended_event",
    "moved",
    "newest_calls",
    "printable",
    "require_valid",
    "tool_message_text",
    "words_of",
]

TYPED = "typed"
"""Key in the `additional_kwargs` of a message of the user: how many of its characters are their own words.

The files that they name stand behind those.
"""
PAUSED = "paused"
"""Reason of a call that rests where it stands, until what it waits for is there."""

_KNOWN_REASONS = ("never_started", "outcome_unknown", PAUSED)
"""Reasons that records carry for the program; the sentence says the same in words."""


def require_valid(messages: "Sequence[AnyMessage]") -> None:
    """Check that each call is answered exactly once, in order, before anything else, and that ids are unique.

    Raises:
        InvalidHistory: it is not; the message names the place.
    """
    waiting: list[str] = []
    seen: set[str] = set()
    for position, message in enumerate(messages):
        if message.type == "tool":
            if not waiting or waiting.pop(0) != message.tool_call_id:
                raise InvalidHistory(f"message {position} answers {message.tool_call_id!r} out of turn")
            continue
        if waiting:
            raise InvalidHistory(f"message {position} comes before the calls {waiting} are answered")
        if message.type == "ai":
            waiting = [str(call["id"]) for call in message.tool_calls]
            _require_sound(position, waiting, seen, has_text=bool(message.text))
            seen.update(waiting)
    if waiting:
        raise InvalidHistory(f"the calls {waiting} have no answers")


def _require_sound(position: int, call_ids: list[str], seen: set[str], *, has_text: bool) -> None:
    if not call_ids and not has_text:
        raise InvalidHistory(f"message {position} has neither text nor calls")
    if len({*call_ids}) < len(call_ids) or not seen.isdisjoint(call_ids):
        raise InvalidHistory(f"message {position} repeats a call id among {call_ids}")


def words_of(message: "AnyMessage") -> str:
    """The user's own words in a message of theirs, without the files that it brought."""
    typed = message.additional_kwargs.get(TYPED)
    return message.text[:typed] if isinstance(typed, int) else message.text


def newest_calls(messages: "Sequence[AnyMessage]") -> "list[tuple[str, str, dict[str, object], str]]":
    """Id, tool name, arguments and complaint (empty if none) of each call of the newest message."""
    message = messages[-1]
    if message.type != "ai":
        raise InvalidHistory(f"the newest message is from {message.type!r}, not from the model")
    complaints = message.response_metadata.get("unusable_arguments") or {}
    return [
        (str(call["id"]), call["name"], call["args"], str(complaints.get(str(position), "")))
        for position, call in enumerate(message.tool_calls)
    ]


def printable(text: str) -> str:
    """The text without lone surrogates, which no strict server accepts."""
    return text.encode("utf-8", "replace").decode("utf-8")


def tool_message_text(call: ToolCallInfo) -> str:
    """What the model is told about a final call: what happened, and truthfully what is not known."""
    told = _told(call)
    return f"{told}\n{printable(call['hook_feedback'])}" if call.get("hook_feedback") else told


def _told(call: ToolCallInfo) -> str:
    edited = f"The user changed the arguments to {call['arguments']!r}.\n" if call.get("edited") else ""
    match call["status"]:
        case "success":
            return printable(edited + (call["result"] or "(no output)"))
        case "error":
            parts = [call["result"] or "", f"Error: {call['error_msg'] or 'unknown'}"]
            return printable(edited + "\n".join(part for part in parts if part))
        case "cancelled":
            return printable(_cancelled_text(call))
        case "pending" | "awaiting_approval" | "executing" | "interrupted":
            raise InternalError(f"call {call['call_id']} is {call['status']}: it has no result for the model yet")
        case _:
            assert_never(call["status"])


def _cancelled_text(call: ToolCallInfo) -> str:
    reason = call.get("reason", "")
    not_run = "Not run again, it may have had its effect before" if call.get("started") else "Not run"
    match call.get("decision"):
        case "deny":
            return f"{not_run}: denied by policy. {reason}".rstrip()
        case "reject":
            words = f" The user said: {reason}" if reason else ""
            refused = (
                "the user does not answer this question"
                if call.get("requires_input")
                else "the user refused this call"
            )
            return f"{not_run}: {refused}.{words}"
    happened = "Its outcome is unknown: look before you repeat it." if call.get("started") else "It never started."
    told = f"Cancelled: {reason}." if reason and reason not in _KNOWN_REASONS else "Cancelled by the user."
    output = f"\nOutput until then:\n{call['result']}" if call["result"] else ""
    return f"{told} {happened}{output}"


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


def ended_event(call: ToolCallInfo) -> ToolCallFinished:
    """The event that tells what became of a call."""
    return ToolCallFinished(
        call_id=call["call_id"],
        tool_name=call["tool_name"],
        status=call["status"],
        summary=call.get("summary", ""),
        output=call["result"] or "",
        error=call["error_msg"],
        reason=call.get("reason", ""),
        metadata=call.get("metadata", {}),
    )
