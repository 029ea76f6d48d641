"""The durable record of one tool call, the digest that an approval is bound to, and the marker of its processes."""

import hashlib
import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Literal, Required, TypedDict

from graph_agent.calls.status import FINAL, CallStatus

__all__ = [
    "CallKind",
    "Risk",
    "ToolCallInfo",
    "args_digest",
    "completed_tool_calls",
    "pending_tool_calls",
    "process_marker",
]

Risk = Literal["low", "medium", "high"]
CallKind = Literal["readonly", "write", "execute"]


class ToolCallInfo(TypedDict, total=False):
    """One call of the newest model message. Times are ISO-8601 UTC; absent keys mean "not known (yet)"."""

    call_id: Required[str]
    """Unique in its thread."""
    tool_name: Required[str]
    """The registered name where the tool is known, else what the model wrote."""
    arguments: Required[dict[str, Any]]
    """What will run: coerced to the tool's schema, and edited where the user edited."""
    status: Required[CallStatus]
    result: Required[str | None]
    """What the model is told on success; the output that came with an error, or until the call was broken off."""
    hook_feedback: str
    """What hooks said of the result; the model is told it behind the result, which it never changes."""
    error_msg: Required[str | None]
    """Why the call failed; None unless the status is error."""
    attempt: int
    """1 for the first; each retry adds one."""
    risk: Risk
    kind: CallKind
    concurrency_safe: bool
    """May run at once with neighbouring calls that say the same."""
    requires_input: bool
    """The call is a question to the user: it is answered in words, never approved."""
    resumable: bool
    """Broken off, the call goes on where it stood when it is run again; a sub-agent does its work."""
    answer: str
    """Those words."""
    decision: str
    """What settled it: allow, ask, deny (policy); approve, edit, answer, reject, retry, done, cancel (a person)."""
    decided_by: str
    """Who answered: "policy", or the name a person answered under."""
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
    """Set by approve and retry only: tells calls a person let through from calls policy let through."""
    started_at: str
    ended_at: str
    started: bool
    """Whether any attempt may have started: false means that nothing can have happened."""
    paths: list[str]
    """Where the paths in the arguments led when the call was judged."""
    preview: dict[str, Any]
    """What consent was asked for: `{"kind": "diff" | "text", "text": ..., "observed": {...}}`."""
    summary: str
    """One line for the user."""
    verdict: dict[str, Any]
    """Mode auto: `{"allow", "reason", "model", "usage"}` of the model that judged the call."""
    edited: bool
    """The user changed the arguments the model had asked for."""
    outside_sandbox: bool
    """A person let this very call run outside of the sandbox."""
    metadata: dict[str, Any]
    """Structured data for rendering (a diff, an exit code); never sent to the model."""


def pending_tool_calls(calls: dict[str, ToolCallInfo]) -> list[ToolCallInfo]:
    """The calls that are not final yet, in the model's order."""
    return [call for call in calls.values() if call["status"] not in FINAL]


def completed_tool_calls(calls: dict[str, ToolCallInfo]) -> list[ToolCallInfo]:
    """The calls that are final, in the model's order."""
    return [call for call in calls.values() if call["status"] in FINAL]


def args_digest(call_id: str, tool_name: str, attempt: int, arguments: Mapping[str, Any]) -> str:
    """SHA-256, in hex, over id, tool, attempt and arguments; independent of the order of the arguments' keys."""
    shown = json.dumps([call_id, tool_name, attempt, arguments], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(shown.encode()).hexdigest()


def process_marker(owner_token: str, call_id: str, attempt: int) -> str:
    """The same for whoever knows the journal row; of no other attempt, thread, database or machine."""
    return sha256(f"{owner_token}\0{call_id}\0{attempt}".encode("utf-8", "replace")).hexdigest()[:32]
