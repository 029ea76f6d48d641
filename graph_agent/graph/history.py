"""Checks that a conversation is valid for the next request; changes records and reports them to the model."""

from typing import TYPE_CHECKING, Any, assert_never, cast

from graph_agent.calls import DO_NOT_REPEAT, CallStatus, ToolCallInfo, outcome_of, require_allowed
from graph_agent.errors import InternalError, InvalidHistory
from graph_agent.ports.stored_text import storable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import AnyMessage


__all__ = [
    "PAUSED",
    "TYPED",
    "change_of",
    "moved",
    "newest_calls",
    "require_valid",
    "tool_message_text",
    "words_of",
]

TYPED = "typed"
"""Key in the `additional_kwargs` of a message of the user: how many of its characters are their own words.

The files that they name come behind those.
"""
PAUSED = "paused"
"""Reason of a call that was interrupted on purpose, because its sub-agent waits for a person."""

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
            if not waiting and not message.text:
                raise InvalidHistory(f"message {position} has neither text nor calls")
            if len({*waiting}) < len(waiting) or not seen.isdisjoint(waiting):
                raise InvalidHistory(f"message {position} repeats a call id among {waiting}")
            seen.update(waiting)
    if waiting:
        raise InvalidHistory(f"the calls {waiting} have no answers")


def words_of(message: "AnyMessage") -> str:
    """The user's own words in a message, without the attached files."""
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


def tool_message_text(call: ToolCallInfo) -> str:
    """What the model receives about a final call: what happened, and what is not known.

    Raises:
        InternalError: the call is not final.
    """
    status, output = call["status"], call["result"] or ""
    match status:
        case "success":
            text = output or "(no output)"
        case "error":
            text = "\n".join(filter(None, (output, f"Error: {call['error_msg'] or 'unknown'}")))
        case "cancelled":
            text = _cancelled_text(call)
        case "pending" | "awaiting_approval" | "executing" | "interrupted":
            raise InternalError(f"call {call['call_id']} is {status}: it has no result for the model yet")
        case _:
            assert_never(status)
    if call.get("changed_by"):
        text = f"The arguments were changed by {call['changed_by']} to {call['arguments']!r}.\n{text}"
    if call.get("edited") and status != "cancelled":
        text = f"The user changed the arguments to {call['arguments']!r}.\n{text}"
    return storable(f"{text}\n{call['hook_feedback']}" if call.get("hook_feedback") else text)


def _cancelled_text(call: ToolCallInfo) -> str:
    reason, has_started = call.get("reason", ""), bool(call.get("started"))
    not_run = "Not run again: it may already have had an effect" if has_started else "Not run"
    match call.get("decision"):
        case "deny":
            return f"{not_run}: denied by policy. {DO_NOT_REPEAT} {reason}".rstrip()
        case "reject":
            refused = "rejected this call"
            if call.get("requires_input"):
                refused = "declined to answer this question"
            return f"{not_run}: the user {refused}. {DO_NOT_REPEAT}" + (
                f" The user said: {reason}" if reason else ""
            )
    cause = f"Cancelled: {reason}." if reason and reason not in _KNOWN_REASONS else "Cancelled by the user."
    happened = (
        "Its outcome is unknown: check its effect before you repeat it." if has_started else "It never started."
    )
    return f"{cause} {happened}" + (f"\nOutput so far:\n{call['result']}" if call["result"] else "")


def moved(call: ToolCallInfo, status: CallStatus, **fields: Any) -> ToolCallInfo:
    """The record after a change of status; with the outcome if it is cancelled.

    Raises:
        ForbiddenTransition: the transition table has no such row.
    """
    require_allowed(call["call_id"], call["status"], status)
    after = cast("ToolCallInfo", {**call, "status": status, **fields})
    outcome = outcome_of(after)
    return {**after, "outcome": outcome} if outcome else after


def change_of(before: ToolCallInfo | None, after: ToolCallInfo) -> dict[str, Any]:
    """What to write so that `before` becomes `after`: the whole record for a new one, else only what differs."""
    if before is None:
        return dict(after)
    changed = {key: value for key, value in after.items() if key not in before or before[key] != value}  # type: ignore[literal-required]  # keys come from the record itself
    return {**changed, "status": after["status"], "attempt": after.get("attempt", 1)}
