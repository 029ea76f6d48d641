"""The outcome of a headless run as one JSON object, and as lines for a person.

Knows the shapes others script against; prints nothing itself.

What a headless run leaves open, read from the database once its session has let go of the thread.

Plain lines about a headless run, for stderr. Knows no colours, no cursor, no terminal.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from graph_agent.app.reader import read_database
from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.approvals import approval_json
from graph_agent.cli.views.calls import call_json, call_name
from graph_agent.cli.views.format import format_compaction, format_shell
from graph_agent.errors import AgentError
from graph_agent.events import (
    Compacted,
    Event,
    ShellContinued,
    ShellEnded,
    ToolCallCreated,
    ToolCallFinished,
    ToolCallStarted,
    WarningIssued,
)
from graph_agent.inspect import Reader
from graph_agent.ports.usage import usage_report
from graph_agent.session.turn_result import OpenQuestion, TurnResult

__all__ = [
    "PendingWork",
    "ProgressReporter",
    "failure_report",
    "pending_lines",
    "read_pending_work",
    "result_report",
    "resume_lines",
    "shared_call_ids",
]


@dataclass(frozen=True, slots=True)
class PendingWork:
    """What waits for a decision in a thread that nobody holds."""

    checkpoint_id: str | None = None
    pending_approvals: list[dict[str, Any]] = field(default_factory=list)
    interrupted_calls: list[dict[str, Any]] = field(default_factory=list)
    usage: dict[str, Any] = field(default_factory=lambda: usage_report(None))
    """What the turn used until then."""


def read_pending_work(database: Path | None, thread_id: str | None) -> PendingWork:
    """What the thread waits for; nothing where that cannot be read, as the run has more important news then."""
    if database is None or thread_id is None:
        return PendingWork()
    try:
        with read_database(database) as reader:
            checkpoint_id, shared = reader.thread(thread_id).checkpoint_id, reader.shared_call_ids()
            waiting = [view for view in reader.approvals() if view.thread_id == thread_id and view.is_waiting]
            broken = [view for view in reader.interrupted() if view.thread_id == thread_id and view.is_interrupted]
            usage = _usage(reader, thread_id)
    except AgentError:
        return PendingWork()
    return PendingWork(
        checkpoint_id,
        [approval_json(view, shared) for view in waiting],
        [call_json(view) for view in broken],
        usage,
    )


def _usage(reader: Reader, thread_id: str) -> dict[str, Any]:
    try:
        turn = reader.inspection(thread_id).state.values.get("turn")
    except AgentError:
        turn = None
    return usage_report(turn.get("usage") if isinstance(turn, dict) else None)


def shared_call_ids(database: Path | None) -> frozenset[str]:
    """Call ids that occur in several threads; none where that cannot be read."""
    if database is None:
        return frozenset()
    try:
        with read_database(database) as reader:
            return reader.shared_call_ids()
    except AgentError:
        return frozenset()


def result_report(rest: TurnResult, shared: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The object `run --output json` prints: the lists in the shape of `approvals list` and `calls`.

    `shared` are the call ids that occur in several threads, which an approval is therefore not named by alone.
    """
    return {
        "status": "failed" if rest.status == "resumable" or rest.unmet else rest.status,
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


def failure_report(
    status: str, error: str, thread_id: str | None, left: PendingWork | None = None
) -> dict[str, Any]:
    """The same object for a run that ended before the graph came to a rest of its own."""
    left = left or PendingWork()
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


def pending_lines(rest: TurnResult, shared: frozenset[str] = frozenset()) -> Iterator[str]:
    """What waits for a decision, and how to give it."""
    for item in rest.questions:
        call = item.call
        about = escape(call.get("summary") or call["tool_name"])
        name = escape(call["tool_name"])
        call_id = escape(call_name(item.thread_id or rest.thread_id, call["call_id"], shared))
        if item.question.kind == "approval" and call.get("requires_input"):
            yield f"waiting for an answer: {call_id} {about}"
        elif item.question.kind == "approval":
            yield f"waiting for approval: {call_id} {name} ({call.get('risk', 'medium')} risk) {about}"
        else:
            yield f"interrupted: {call_id} {name}, {escape(item.question.reason)} {about}"
    waiting = _of_kind(rest, "approval")
    if any(item.call.get("requires_input") for item in waiting):
        yield "answer a question with: graph-agent approvals answer CALL TEXT"
    if not all(item.call.get("requires_input") for item in waiting):
        yield "answer with: graph-agent approvals approve CALL, or approvals reject CALL --reason TEXT"
    if any(_of_kind(rest, "recovery")):
        yield f"decide with: graph-agent recover {rest.thread_id} --retry|--done|--cancel CALL, or in the chat"


def resume_lines(thread_id: str) -> tuple[str, str]:
    """How to go on with a thread that came to no good end."""
    return f"thread: {thread_id}", f"go on with: graph-agent resume {thread_id}"


def _of_kind(rest: TurnResult, kind: str) -> list[OpenQuestion]:
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
        "requires_input": bool(call.get("requires_input")),
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


_BROKEN_OFF = ("never_started", "outcome_unknown")
"""Reasons of a call that was broken off: one that ends with them, and did not run again, ends by a decision."""


class ProgressReporter:
    """A subscriber that writes one line per fact worth a line."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._displays: dict[str, str] = {}
        self._started: dict[str, float] = {}

    def __call__(self, number: int, event: Event) -> None:  # noqa: ARG002 - the shape of a subscriber
        """Take in one event."""
        match event:
            case ToolCallCreated(call=call):
                self._displays[call["call_id"]] = call.get("summary") or call["tool_name"]
            case ToolCallStarted():
                self._started[event.call_id] = time.monotonic()
                self._displays[event.call_id] = event.summary or event.tool_name
            case ToolCallFinished():
                self._tell_end(event)
            case ShellEnded() | ShellContinued():
                self.tell(f"note: {format_shell(event)}")
            case Compacted():
                self.tell(format_compaction(event))
            case WarningIssued(text=text):
                self.tell(f"note: {text}")
            case _:
                pass

    def tell(self, line: str) -> None:
        """Write one line, made safe."""
        self._stream.write(f"{escape(line)}\n")
        self._stream.flush()

    def _tell_end(self, event: ToolCallFinished) -> None:
        about = self._displays.get(event.call_id) or event.summary
        began = self._started.pop(event.call_id, None)
        took = f" {time.monotonic() - began:.1f} s" if began is not None else ""
        why = event.error or event.reason
        detail = f": {why}" if why and event.status != "success" else ""
        if began is None and event.status != "interrupted" and event.reason in _BROKEN_OFF:
            detail = ", as was decided"
        name = "" if about.startswith(event.tool_name) else f"{event.tool_name} "
        self.tell(f"{name}{about} - {event.status}{took}{detail}")
