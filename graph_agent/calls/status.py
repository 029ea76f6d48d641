"""The seven statuses of a tool call, the transitions between them, and the answers that a waiting call accepts.

Reducer, nodes, documentation and tests are derived from these tables.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple, assert_never, get_args

from graph_agent.errors import ForbiddenTransition
from graph_agent.events import AnswerKind

__all__ = [
    "FINAL",
    "INITIAL",
    "STATUSES",
    "TRANSITIONS",
    "CallStatus",
    "Transition",
    "allowed_answers",
    "is_allowed",
    "require_allowed",
]

CallStatus = Literal["pending", "awaiting_approval", "executing", "success", "error", "cancelled", "interrupted"]


class Transition(NamedTuple):
    """One allowed change of status."""

    source: CallStatus
    target: CallStatus
    reason: str


TRANSITIONS: tuple[Transition, ...] = (
    Transition("pending", "awaiting_approval", "policy asks the user"),
    Transition("pending", "executing", "routing marks the call before it may start"),
    Transition("pending", "error", "the tool is unknown or the arguments are unusable"),
    Transition("pending", "cancelled", "policy denies the call, or the user stopped the turn"),
    Transition("awaiting_approval", "pending", "the user approved the call, as shown or edited"),
    Transition("awaiting_approval", "cancelled", "the user refused the call, or stopped the turn"),
    Transition("executing", "success", "the tool finished well"),
    Transition("executing", "error", "the tool finished badly"),
    Transition("executing", "interrupted", "the call was broken off and its outcome is not trusted"),
    Transition("interrupted", "pending", "the user decided to retry: a new attempt"),
    Transition("interrupted", "cancelled", "the user decided to give the call up"),
    Transition("interrupted", "success", "the user or the reconciler says that the effect is there"),
)

STATUSES: tuple[CallStatus, ...] = get_args(CallStatus)

FINAL: frozenset[CallStatus] = frozenset(STATUSES) - {step.source for step in TRANSITIONS}
"""Statuses that no transition leaves: success, error, cancelled."""

INITIAL: frozenset[CallStatus] = frozenset(("pending", "awaiting_approval", "executing", "error", "cancelled"))
"""Statuses a record may be created with."""

_PAIRS = frozenset((step.source, step.target) for step in TRANSITIONS)


def is_allowed(source: CallStatus, target: CallStatus) -> bool:
    """Whether the table has a row from source to target; staying in place is not a row."""
    return (source, target) in _PAIRS


def require_allowed(call_id: str, source: CallStatus, target: CallStatus) -> None:
    """Refuse a change of status that the table does not have.

    Nodes call this before they write; the reducer never raises, because a reducer that raises makes the
    whole thread unreadable.

    Raises:
        ForbiddenTransition: the table has no row from source to target.
    """
    if not is_allowed(source, target):
        allowed = sorted(step.target for step in TRANSITIONS if step.source == source)
        raise ForbiddenTransition(
            f"call {call_id!r} cannot go from {source!r} to {target!r}; "
            f"allowed from there: {', '.join(allowed) or 'nothing, it is final'}"
        )


def allowed_answers(call: Mapping[str, object]) -> tuple[AnswerKind, ...]:
    """The kinds of answer that a `ToolCallInfo` waits for; none where it waits for nothing."""
    status = call["status"]
    if status not in STATUSES:
        return ()  # A record that was read from a file can hold anything.
    match status:
        case "awaiting_approval":
            return ("answer", "reject") if call.get("requires_input") else ("approve", "edit", "reject")
        case "interrupted":
            return ("retry", "done", "cancel")
        case "pending" | "executing" | "success" | "error" | "cancelled":
            return ()
        case _:
            assert_never(status)
