"""The result of a headless run as one JSON object, the check of its answer, its progress as lines on stderr.

What shows calls and reads the database is loaded only if there is something to show.
"""

import contextlib
import json
import re
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from graph_agent.config.paths import own_command, runnable_hints
from graph_agent.errors import AgentError, UsageError
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
from graph_agent.ports.usage import usage_report
from graph_agent.session.turn_result import TurnResult
from graph_agent.wording import escape

if TYPE_CHECKING:
    from graph_agent.session.session import Session

__all__ = [
    "AnswerSchema",
    "ProgressReporter",
    "StructuredAnswer",
    "failure_report",
    "pending_lines",
    "read_schema",
    "result_report",
    "resume_lines",
    "shared_call_ids",
]

_INTERRUPTED = ("never_started", "outcome_unknown")
"""Reasons of an interrupted call; one that ends with them without running again ends by a decision."""


def result_report(result: TurnResult, shared: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The object `run --output json` prints: the lists in the shape of `approvals list` and `calls`.

    `shared` are the call ids that occur in several threads: their approvals are named THREAD:CALL.
    """
    from graph_agent.inspect import call_name

    approvals: list[dict[str, Any]] = []
    interrupted: list[dict[str, Any]] = []
    for item in result.questions:
        call, thread_id = item.call, item.thread_id or result.thread_id
        reason = item.question.reason or call.get("reason", "")
        if item.question.kind == "approval":
            facts = {
                "call_id": call_name(thread_id, call["call_id"], shared),
                "thread_id": thread_id,
                "tool_name": call["tool_name"],
                "arguments": call["arguments"],
                "risk": call.get("risk", "medium"),
                "risk_reason": call.get("risk_reason", ""),
                "reason": reason,
                "asked_at": call.get("asked_at"),
                "preview": call.get("preview"),
                "attempt": item.question.attempt,
                "requires_input": bool(call.get("requires_input")),
            }
            approvals.append(facts)
        else:
            known = {name: getattr(item, name) for name in ("partial_output", "finding", "finding_verdict")}
            processes = list(item.processes)
            interrupted.append({**call, "thread_id": thread_id, "reason": reason, **known, "processes": processes})
    return {
        "status": "failed" if result.status == "resumable" or result.unmet else result.status,
        "thread_id": result.thread_id,
        "checkpoint_id": result.checkpoint_id,
        "answer": result.answer,
        "pending_approvals": approvals,
        "interrupted_calls": interrupted,
        "usage": result.usage,
        "error": result.error or result.unmet or None,
    }


def failure_report(status: str, error: str, thread_id: str | None, database: Path | None = None) -> dict[str, Any]:
    """The same object for a run that ended before its turn did, with what is pending in the thread by now.

    The lists are empty where the database cannot be read: the run reports its own error.
    """
    report: dict[str, Any] = {
        "status": status,
        "thread_id": thread_id,
        "checkpoint_id": None,
        "answer": "",
        "pending_approvals": [],
        "interrupted_calls": [],
        "usage": usage_report(None),
        "error": error,
    }
    if database is None or thread_id is None:
        return report
    from graph_agent.app.reader import read_database
    from graph_agent.cli.views.approvals import approval_json
    from graph_agent.cli.views.calls import call_json

    with contextlib.suppress(AgentError), read_database(database) as reader:
        checkpoint_id, shared = reader.thread(thread_id).checkpoint_id, reader.shared_call_ids()
        waiting = [view for view in reader.approvals() if view.thread_id == thread_id and view.is_waiting]
        open_calls = [view for view in reader.interrupted() if view.thread_id == thread_id]
        report |= {
            "checkpoint_id": checkpoint_id,
            "pending_approvals": [approval_json(view, shared) for view in waiting],
            "interrupted_calls": [call_json(view) for view in open_calls if view.is_interrupted],
        }
        turn = reader.inspection(thread_id).state.values.get("turn")
        report["usage"] = usage_report(turn.get("usage") if isinstance(turn, dict) else None)
    return report


def shared_call_ids(database: Path | None) -> frozenset[str]:
    """Call ids that occur in several threads; none where that cannot be read."""
    if database is not None:
        from graph_agent.app.reader import read_database

        with contextlib.suppress(AgentError), read_database(database) as reader:
            return reader.shared_call_ids()
    return frozenset()


def pending_lines(result: TurnResult, shared: frozenset[str] = frozenset()) -> Iterator[str]:
    """What is pending, and how to answer it."""
    from graph_agent.inspect import call_name

    kinds: set[str] = set()
    for item in result.questions:
        call = item.call
        about = escape(call.get("summary") or call["tool_name"])
        name = escape(call["tool_name"])
        call_id = escape(call_name(item.thread_id or result.thread_id, call["call_id"], shared))
        kind = "input" if call.get("requires_input") and item.question.kind == "approval" else item.question.kind
        kinds.add(kind)
        if kind == "input":
            yield f"waiting for an answer: {call_id} {about}"
        elif kind == "approval":
            why = f": {call['risk_reason']}" if call.get("risk_reason") else ""
            yield f"waiting for approval: {call_id} {name} ({call.get('risk', 'medium')} risk{escape(why)}) {about}"
        else:
            yield f"interrupted: {call_id} {name}, {escape(item.question.reason.replace('_', ' '))} {about}"
    if "input" in kinds:
        yield f"Answer a question: {own_command()} approvals answer CALL TEXT"
    if "approval" in kinds:
        yield f"Respond: {own_command()} approvals approve CALL, or approvals reject CALL --reason TEXT"
    if "recovery" in kinds:
        yield f"Resolve: {own_command()} recover {result.thread_id} --retry|--done|--cancel CALL, or in the chat"


def resume_lines(thread_id: str) -> tuple[str, str]:
    """How to resume a thread that is not done."""
    return f"thread: {thread_id}", f"Resume with: {own_command()} resume {thread_id}"


class ProgressReporter:
    """A subscriber that prints one line for each call that ends and each notice."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._summaries: dict[str, str] = {}
        self._started: dict[str, float] = {}

    def __call__(self, number: int, event: Event) -> None:  # noqa: ARG002 - the shape of a subscriber
        """Take in one event."""
        match event:
            case ToolCallCreated(call=call):
                self._summaries[call["call_id"]] = call.get("summary") or call["tool_name"]
            case ToolCallStarted():
                self._started[event.call_id] = time.monotonic()
                self._summaries[event.call_id] = event.summary or event.tool_name
            case ToolCallFinished():
                about = self._summaries.get(event.call_id) or event.summary
                began = self._started.pop(event.call_id, None)
                from graph_agent.cli.views.format import ended_call

                end = ended_call(event)
                after = " after" if end.by else ""
                took = f"{after} {time.monotonic() - began:.1f} s" if began is not None else ""
                why = event.error or end.reason.replace("_", " ")
                detail = f": {why}" if why and event.status != "success" else ""
                if began is None and not end.by and event.status != "interrupted" and event.reason in _INTERRUPTED:
                    detail = ", as decided"
                name = "" if about.startswith(event.tool_name) else f"{event.tool_name} "
                self.print(f"{name}{about} - {end.phrase}{took}{detail}")
            case ShellEnded() | ShellContinued():
                from graph_agent.cli.views.format import format_shell

                self.print(f"note: {format_shell(event)}")
            case Compacted():
                from graph_agent.cli.views.format import format_compaction

                self.print(format_compaction(event))
            case WarningIssued(text=text):
                self.print(f"note: {text}")
            case _:
                pass

    def print(self, line: str, *, is_folded: bool = True) -> None:
        """Print one line, made safe. Pass `is_folded=False` for a line that a person will copy."""
        text = escape(runnable_hints(line))
        if is_folded and self._stream is sys.stderr:
            from graph_agent.cli.views.table import wrap_message

            text = wrap_message(text)
        self._stream.write(f"{text}\n")
        self._stream.flush()


_RETRIES = 2
_MAX_BYTES = 256 * 1024
_MAX_SHOWN = 300
_FENCED = re.compile(r"\A```(?:json)?[^\S\n]*\n(.*?)\n?```\Z", re.DOTALL)
_REQUEST = """\
End with an answer that is one JSON value and nothing else: no text before or after it, no code fence. It must fit
this JSON Schema:

{}"""
_CORRECTION = """\
Your answer cannot be used: {}
Answer again, with one JSON value and nothing else, that fits the JSON Schema."""


@dataclass(frozen=True, slots=True)
class StructuredAnswer:
    """An answer as it was checked."""

    value: Any = None
    """The JSON value; None if there is a problem."""
    problem: str = ""
    """Why the answer is not JSON that fits, as a sentence; empty if it is."""


@dataclass(frozen=True, slots=True)
class AnswerSchema:
    """The schema of the final answer."""

    schema: Mapping[str, Any]

    @property
    def request(self) -> str:
        """What is added to the user's message."""
        return _REQUEST.format(json.dumps(self.schema, ensure_ascii=False))

    def check(self, answer: str) -> StructuredAnswer:
        """The value in an answer, or what is wrong with it."""
        text = answer.strip()
        if fenced := _FENCED.match(text):
            text = fenced[1]
        from jsonschema.exceptions import best_match  # loaded only where there is a schema
        from referencing.exceptions import Unresolvable

        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            return StructuredAnswer(problem=f"It is not JSON: {error}.")
        try:
            mismatch = best_match(_validator(self.schema).iter_errors(value))
        except (Unresolvable, RecursionError, re.error) as failure:
            return StructuredAnswer(problem=f"The schema cannot be applied: {str(failure)[:_MAX_SHOWN]}.")
        if mismatch is None:
            return StructuredAnswer(value)
        place = mismatch.json_path if mismatch.path else "the value"
        return StructuredAnswer(problem=f"At {place}: {mismatch.message[:_MAX_SHOWN]}.")

    async def corrected(self, session: "Session", result: TurnResult) -> TurnResult:
        """The turn whose answer fits, or the last one after the model was asked a few times to correct it."""
        for _ in range(_RETRIES):
            if result.status != "done" or result.unmet or not (problem := self.check(result.answer).problem):
                break
            result = await session.send_for_schema(_CORRECTION.format(problem), self.schema)
        return result


def _validator(schema: Mapping[str, Any]) -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from referencing import Registry

    # An empty registry: by default the library fetches the documents that a schema refers to.
    return validator_for(schema, default=Draft202012Validator)(schema, registry=Registry())


def read_schema(file: str) -> AnswerSchema:
    """The schema in a file.

    Raises:
        UsageError: the file cannot be read, or is no JSON Schema.
    """
    from jsonschema import SchemaError

    try:
        with Path(file).expanduser().open("rb") as opened:
            text = opened.read(_MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"--json-schema {file!r} cannot be read: {error.strerror or error}.") from error
    if len(text) > _MAX_BYTES:
        raise UsageError(f"--json-schema {file!r} is larger than {_MAX_BYTES // 1024} KB.")
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--json-schema {file!r} is not JSON: {error}.") from error
    if not isinstance(schema, dict):
        raise UsageError(f"--json-schema {file!r} holds no JSON Schema: it should be an object.")
    try:
        type(_validator(schema)).check_schema(schema)
    except SchemaError as error:
        raise UsageError(f"--json-schema {file!r} holds no JSON Schema: {error.message[:_MAX_SHOWN]}.") from error
    return AnswerSchema(schema)
