"""Tool calls as durable records: fields, statuses, the transition table, and how writes to the state are merged.

Reducer, nodes, documentation and tests are derived from these tables.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    Required,
    TypedDict,
    TypeVar,
    assert_never,
    cast,
    get_args,
)

from graph_agent.errors import DamagedDatabase, ForbiddenTransition

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage

    from graph_agent.events import AnswerKind, CallOutcome, ToolCallFinished

__all__ = [
    "DO_NOT_REPEAT",
    "FINAL",
    "FULL_RESULTS",
    "INITIAL",
    "MAX_AUTOMATIC_RETRIES",
    "NEW_MESSAGE",
    "OUTCOMES",
    "PLAN_TOOL",
    "REPLACES",
    "SHORTENED",
    "STATUSES",
    "STOPPED_BY_USER",
    "TRANSITIONS",
    "USER_DECISION",
    "CallKind",
    "CallStatus",
    "Risk",
    "ToolCallInfo",
    "Transition",
    "allowed_answers",
    "args_digest",
    "completed_tool_calls",
    "ended_event",
    "is_allowed",
    "merge_calls",
    "merge_messages",
    "merge_names",
    "mode_after_plan",
    "outcome_of",
    "pending_tool_calls",
    "process_marker",
    "question_and_options",
    "replace_entries",
    "require_allowed",
]

K = TypeVar("K")
V = TypeVar("V")

CallStatus = Literal["pending", "awaiting_approval", "executing", "success", "error", "cancelled", "interrupted"]
Risk = Literal["low", "medium", "high"]
CallKind = Literal["readonly", "write", "execute"]


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
    Transition("awaiting_approval", "cancelled", "the user rejected the call, or stopped the turn"),
    Transition("executing", "success", "the tool succeeded"),
    Transition("executing", "error", "the tool failed"),
    Transition("executing", "interrupted", "the call was interrupted and its outcome is not trusted"),
    Transition("interrupted", "pending", "the user decided to retry: a new attempt"),
    Transition("interrupted", "cancelled", "the user cancelled the call"),
    Transition("interrupted", "success", "the user or the reconciler confirmed the effect"),
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
    """Refuse a change of status that is not in the table.

    Nodes call this before they write; the reducer never raises, because a reducer that raises makes the
    whole thread unreadable.

    Raises:
        ForbiddenTransition: the table has no row from source to target.
    """
    if (source, target) not in _PAIRS:
        allowed = sorted(step.target for step in TRANSITIONS if step.source == source)
        raise ForbiddenTransition(
            f"call {call_id!r} cannot go from {source!r} to {target!r}; "
            f"allowed from there: {', '.join(allowed) or 'nothing, it is final'}"
        )


MAX_AUTOMATIC_RETRIES = 3
"""How often an interrupted call that only reads runs again without asking."""


class ToolCallInfo(TypedDict, total=False):
    """One call of the newest model message. Times are ISO-8601 UTC; absent keys mean "not known (yet)"."""

    call_id: Required[str]
    """Unique in its thread."""
    tool_name: Required[str]
    """The registered name where the tool is known, else what the model wrote."""
    arguments: Required[dict[str, Any]]
    """What will run: coerced to the tool's schema, and changed where a hook or the user changed it."""
    status: Required[CallStatus]
    result: Required[str | None]
    """What the model receives on success; the output that came with an error, or until an interruption."""
    hook_feedback: str
    """What hooks said of the result; sent to the model behind the result, which it never changes."""
    error_msg: Required[str | None]
    """Why the call failed; None unless the status is error."""
    attempt: int
    """1 for the first; each retry adds one."""
    risk: Risk
    """Of this very call, which a sandbox may make lower than that of its tool."""
    risk_reason: str
    """What the call does, to be read after "it"; absent where only the risk of the tool is known."""
    kind: CallKind
    concurrency_safe: bool
    """May run at once with neighbouring calls that say the same."""
    requires_input: bool
    """The call is a question to the user: it is answered in words, never approved."""
    resumable: bool
    """After an interruption the next attempt continues where this one stopped; a sub-agent does the work."""
    answer: str
    """Those words."""
    decision: str
    """What decided: allow, ask, deny (policy); approve, edit, answer, reject, retry, done, cancel, stop (a person);
    limit."""
    decided_by: str
    """Who decided: "policy", "user" (stopped the turn), "limit", or the name a person answered under."""
    outcome: str
    """Why it is cancelled, a `CallOutcome`; see `outcome_of`. Absent for every other status."""
    rule: str
    """The policy rule that spoke."""
    reason: str
    """Why the record has its status: the policy's reason, never_started, outcome_unknown, the user's words."""
    args_digest: str
    """Digest over id, tool, attempt and arguments that an approval is bound to; see `args_digest`."""
    owner_token: str
    """Token of the run that marked the call; while pending, of the run in which a person approved or retried it."""
    asked_at: str
    approved_at: str
    """Set by approve and retry only: separates calls a person let through from calls policy let through."""
    started_at: str
    ended_at: str
    started: bool
    """Whether any attempt may have started: false means that nothing can have happened."""
    paths: list[str]
    """Where the paths in the arguments led when policy decided."""
    preview: dict[str, Any]
    """What consent was asked for: `{"kind": "diff" | "text", "text": ..., "observed": {...}}`."""
    summary: str
    """One line for the user."""
    verdict: dict[str, Any]
    """Mode auto: `{"allow", "reason", "model", "usage"}` of the model that reviewed the call."""
    changed_by: str
    """The hooks that changed the arguments before the call was evaluated."""
    requested_arguments: dict[str, Any]
    """What the model had asked for, where hooks changed it."""
    edited: bool
    """The user changed the arguments the model had asked for."""
    outside_sandbox: bool
    """A person let this very call run outside of the sandbox."""
    metadata: dict[str, Any]
    """Structured data for rendering (a diff, an exit code); never sent to the model."""


OUTCOMES: "Mapping[str, CallOutcome]" = {
    "reject": "rejected",
    "deny": "denied",
    "stop": "stopped",
    "limit": "stopped",
    "cancel": "cancelled",
}
"""The outcome of a cancelled call by the decision that ended it."""

STOPPED_BY_USER = "stopped by user"
"""What the reason of a call begins with that ended because the user stopped the turn."""


def outcome_of(call: Mapping[str, Any]) -> "CallOutcome | None":
    """Why a call is cancelled; None for every other status, or if its record does not say what decided.

    Records of versions that did not store the outcome have the decision, so this holds for them too.
    """
    return OUTCOMES.get(str(call.get("decision"))) if call["status"] == "cancelled" else None


def pending_tool_calls(calls: dict[str, ToolCallInfo]) -> list[ToolCallInfo]:
    """The calls that are not final yet, in the model's order."""
    return [call for call in calls.values() if call["status"] not in FINAL]


DO_NOT_REPEAT = "Do not repeat it."
"""Follows in the result of a call that was not run. It is for a language model."""
PLAN_TOOL = "present_plan"
"""The tool whose question may end plan mode."""
_PLAN_ANSWERS: Mapping[str, str] = {"start, ask before changes": "default", "start, accept edits": "acceptEdits"}
_SHORT_PLAN_ANSWERS: Mapping[str, str] = {
    "1": "default",
    "2": "acceptEdits",
    "y": "default",
    "yes": "default",
    "start": "default",
    "a": "acceptEdits",
    "accept edits": "acceptEdits",
}


def question_and_options(call: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """What a call that requires input asks, and the answers that it offers; others may be given too."""
    arguments = call["arguments"]
    if call["tool_name"] == PLAN_TOOL:
        return str(arguments.get("plan", "")), tuple(_PLAN_ANSWERS)
    return str(arguments.get("question", "")), tuple(map(str, arguments.get("options") or ()))


def mode_after_plan(call: Mapping[str, Any], answer: str) -> str | None:
    """The permission mode that an answer to a plan chooses; None for every other answer."""
    if call["tool_name"] != PLAN_TOOL:
        return None
    text = " ".join(answer.split()).rstrip(".!").casefold()
    return _PLAN_ANSWERS.get(text) or _SHORT_PLAN_ANSWERS.get(text)


def completed_tool_calls(calls: dict[str, ToolCallInfo]) -> list[ToolCallInfo]:
    """The calls that are final, in the model's order."""
    return [call for call in calls.values() if call["status"] in FINAL]


def allowed_answers(call: Mapping[str, object]) -> tuple["AnswerKind", ...]:
    """The kinds of answer that a `ToolCallInfo` waits for; none if it needs no answer."""
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


def args_digest(call_id: str, tool_name: str, attempt: int, arguments: Mapping[str, Any]) -> str:
    """SHA-256, in hex, over id, tool, attempt and arguments; independent of the order of the arguments' keys."""
    shown = json.dumps([call_id, tool_name, attempt, arguments], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(shown.encode()).hexdigest()


def process_marker(owner_token: str, call_id: str, attempt: int) -> str:
    """The marker for the processes of one attempt: 32 hex digits, computed from fields of the journal row."""
    text = f"{owner_token}\0{call_id}\0{attempt}"
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


REPLACES = "replaces"
"""Key in the `response_metadata` of a summary: the ids of the messages whose place it takes."""
SHORTENED = "shortened"
"""Key in the `response_metadata` of a message that holds less than the one of the same id that it follows."""
FULL_RESULTS = "wants_whole"
"""Key in the `response_metadata` of a model's message: it does not look back, so each of its calls gets a whole
result, also one that an earlier result holds already."""
USER_DECISION = "decided"
"""Key in the `additional_kwargs` of a tool message: the call was not run because a person decided so."""


def merge_messages(messages: "list[AnyMessage]", writes: Sequence[Any]) -> "list[AnyMessage]":
    """Fold writes, each a message or a list of messages, oldest first: upsert by id, remove by RemoveMessage.

    The channel holds the context that the next request is made of. Messages that a compaction removes stay in the
    transcript and in earlier checkpoints; a message that replaces others goes where the first of them stood.
    Deterministic and batching-invariant, as a delta channel demands.

    Raises:
        DamagedDatabase: a write is something else.
    """
    try:
        merged = {message.id: message for message in messages}
        for write in writes:
            for message in write if isinstance(write, list | tuple) else [write]:
                if message.type == "remove":
                    merged.pop(message.id, None)
                elif isinstance(replaced := message.response_metadata.get(REPLACES), list):
                    merged = replace_entries(merged, replaced, message.id, message)
                else:
                    merged[message.id] = message
    except (AttributeError, TypeError) as error:
        raise _damaged("conversation", error) from error
    return list(merged.values())


def replace_entries(merged: dict[K, V], replaced: Sequence[K], key: K, value: V) -> dict[K, V]:
    """The mapping with several entries replaced by one; at the end if none of them exists."""
    gone = {*replaced, key}
    folded: dict[K, V] = {}
    for old, entry in merged.items():
        if old not in gone:
            folded[old] = entry
        elif key not in folded:
            folded[key] = value
    folded.setdefault(key, value)
    return folded


def merge_names(names: list[str], more: Any) -> list[str]:
    """The names with those that are new, in the order of arrival. Never raises: the state stays readable."""
    added = [name for name in more if isinstance(name, str)] if isinstance(more, list | tuple) else []
    return list(dict.fromkeys([*names, *added]))


NEW_MESSAGE = "__new_message__"
"""Key of a write whose presence drops the records of the previous model message before the rest applies."""


def merge_calls(
    calls: Mapping[str, ToolCallInfo], writes: Iterable[Mapping[str, Mapping[str, Any]]]
) -> dict[str, ToolCallInfo]:
    """Fold writes, oldest first, into the records; each write maps a call id to a whole or partial record.

    A write that the transition table forbids leaves the record as it was, because an error here would come back at
    each reading of the thread. Batching-invariant: folding two batches one after the other gives the same as both
    together.

    Raises:
        DamagedDatabase: a write is something else.
    """
    try:
        merged = dict(calls)
        for write in writes:
            if NEW_MESSAGE in write:
                merged.clear()
            for call_id, change in write.items():
                if call_id != NEW_MESSAGE and _applies(merged.get(call_id), change):
                    merged[call_id] = cast("ToolCallInfo", {**merged.get(call_id, {}), **change})
    except (AttributeError, TypeError, KeyError) as error:
        raise _damaged("calls", error) from error
    return merged


def _applies(record: ToolCallInfo | None, change: Mapping[str, Any]) -> bool:
    if record is None:
        return change.keys() >= ToolCallInfo.__required_keys__ and change["status"] in INITIAL
    attempt, status = record.get("attempt", 1), record["status"]
    if status in FINAL or change.get("attempt", attempt) < attempt:
        return False
    return (status, change.get("status", status)) in _PAIRS


def _damaged(channel: str, error: Exception) -> DamagedDatabase:
    return DamagedDatabase(
        f"The {channel} has a shape that is never stored ({str(error).partition(chr(10))[0]}). If it was given as "
        "input just now, nothing was stored: give messages, texts, or dicts with role and content. Otherwise the "
        "database is damaged or was changed by another program: restore a backup, or resume from an earlier "
        "checkpoint: `graph-agent history`"
    )


def ended_event(call: ToolCallInfo) -> "ToolCallFinished":
    """The event that reports the end of a call."""
    from graph_agent.events import ToolCallFinished  # noqa: PLC0415 - commands that only read do not load it

    return ToolCallFinished(
        call_id=call["call_id"],
        tool_name=call["tool_name"],
        status=call["status"],
        summary=call.get("summary", ""),
        output=call["result"] or "",
        error=call["error_msg"],
        reason=call.get("reason", ""),
        metadata=call.get("metadata", {}),
        outcome=outcome_of(call),
        decided_by=call.get("decided_by", "") if call["status"] == "cancelled" else "",
        outside_sandbox=call.get("outside_sandbox", False),
    )
