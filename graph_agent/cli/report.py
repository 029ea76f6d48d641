"""The outcome of a headless run as one JSON object, and as lines for a person.

Knows the shapes others script against; prints nothing itself.
"""

from collections.abc import Iterator
from typing import Any

from graph_agent.cli.escape import escape
from graph_agent.cli.left_open import LeftOpen
from graph_agent.cli.views.calls import call_name
from graph_agent.session.api import OpenQuestion, Rest

__all__ = ["failure_report", "rest_report", "resume_lines", "waiting_lines"]


def rest_report(rest: Rest, shared: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The object `run --output json` prints: the lists in the shape of `approvals list` and `calls`.

    `shared` are the call ids that occur in several threads, which an approval is therefore not named by alone.
    """
    return {
        "status": "failed" if rest.status == "broken_off" or rest.unmet else rest.status,
        "thread_id": rest.thread_id,
        "checkpoint_id": rest.checkpoint_id,
        "answer": rest.answer,
        "pending_approvals": [
            _approval(item, item.thread_id or rest.thread_id, shared) for item in _of_kind(rest, "approval")
        ],
        "interrupted_calls": [
            _interrupted(item, item.thread_id or rest.thread_id) for item in _of_kind(rest, "recovery")
        ],
        "usage": rest.usage,
        "error": rest.error or rest.unmet or None,
    }


def failure_report(status: str, error: str, thread_id: str | None, left: LeftOpen | None = None) -> dict[str, Any]:
    """The same object for a run that ended before the graph came to a rest of its own."""
    left = left or LeftOpen()
    return {
        "status": status,
        "thread_id": thread_id,
        "checkpoint_id": left.checkpoint_id,
        "answer": "",
        "pending_approvals": left.pending_approvals,
        "interrupted_calls": left.interrupted_calls,
        "usage": left.usage,
        "error": error,
    }


def waiting_lines(rest: Rest, shared: frozenset[str] = frozenset()) -> Iterator[str]:
    """What waits for a decision, and how to give it."""
    for item in rest.questions:
        call = item.call
        about = escape(call.get("display") or call["tool_name"])
        name = escape(call["tool_name"])
        call_id = escape(call_name(item.thread_id or rest.thread_id, call["call_id"], shared))
        if item.question.kind == "approval" and call.get("wants_answer"):
            yield f"waiting for an answer: {call_id} {about}"
        elif item.question.kind == "approval":
            yield f"waiting for approval: {call_id} {name} ({call.get('risk', 'medium')} risk) {about}"
        else:
            yield f"interrupted: {call_id} {name}, {escape(item.question.reason)} {about}"
    waiting = _of_kind(rest, "approval")
    if any(item.call.get("wants_answer") for item in waiting):
        yield "answer a question with: graph-agent approvals answer CALL TEXT"
    if not all(item.call.get("wants_answer") for item in waiting):
        yield "answer with: graph-agent approvals approve CALL, or approvals reject CALL --reason TEXT"
    if any(_of_kind(rest, "recovery")):
        yield f"decide with: graph-agent recover {rest.thread_id} --retry|--done|--cancel CALL, or in the chat"


def resume_lines(thread_id: str) -> tuple[str, str]:
    """How to go on with a thread that came to no good end."""
    return f"thread: {thread_id}", f"go on with: graph-agent resume {thread_id}"


def _of_kind(rest: Rest, kind: str) -> list[OpenQuestion]:
    return [item for item in rest.questions if item.question.kind == kind]


def _approval(item: OpenQuestion, thread_id: str, shared: frozenset[str]) -> dict[str, Any]:
    call = item.call
    return {
        "call_id": call_name(thread_id, call["call_id"], shared),
        "thread_id": thread_id,
        "tool_name": call["tool_name"],
        "arguments": call["arguments"],
        "risk": call.get("risk", "medium"),
        "reason": item.question.reason or call.get("reason", ""),
        "asked_at": call.get("asked_at"),
        "preview": call.get("preview"),
        "attempt": item.question.attempt,
        "wants_answer": bool(call.get("wants_answer")),
    }


def _interrupted(item: OpenQuestion, thread_id: str) -> dict[str, Any]:
    return {
        **item.call,
        "thread_id": thread_id,
        "reason": item.question.reason or item.call.get("reason", ""),
        "partial_output": item.partial_output,
        "finding": item.finding,
        "finding_verdict": item.finding_verdict,
        "processes": list(item.processes),
    }
