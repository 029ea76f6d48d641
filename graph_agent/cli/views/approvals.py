"""`approvals`: what waits for an answer, and what came of giving one."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.calls import call_name
from graph_agent.cli.views.format import age_seconds, format_time_and_age, parse_duration
from graph_agent.cli.views.table import get_colorizer, print_json, print_lines
from graph_agent.errors import NothingYet, UsageError
from graph_agent.inspect import CallView, Reader

__all__ = ["ApprovalFilter", "approval_json", "list_approvals"]

_FIRST_LINES = 40
_RISKS = ("low", "medium", "high")


@dataclass(frozen=True, slots=True)
class ApprovalFilter:
    """Which questions are listed; what is not said lets all through."""

    thread: str | None = None
    tool: str | None = None
    risk: str | None = None
    older_than: str | None = None
    """A span such as `10m`."""

    def require_sense(self) -> None:
        """Refuse what can fit no question.

        Raises:
            UsageError: the risk or the span is none.
        """
        if self.risk is not None and self.risk not in _RISKS:
            raise UsageError(f"--risk {self.risk!r} is no risk; use one of: {', '.join(_RISKS)}")
        if self.older_than is not None:
            parse_duration(self.older_than, "--older-than")

    def fits(self, view: CallView, threads: frozenset[str] | None) -> bool:
        """Whether a question is wanted; `threads` are those that are: one and its sub-agents."""
        record = view.record
        oldest = 0.0 if self.older_than is None else parse_duration(self.older_than, "--older-than")
        return (
            (threads is None or view.thread_id in threads)
            and self.tool in (None, record["tool_name"])
            and self.risk in (None, record.get("risk", "medium"))
            and (age_seconds(record.get("asked_at")) or 0) >= oldest
        )


def _family(reader: Reader, text: str | None) -> frozenset[str] | None:
    if not text:
        return None
    own = reader.resolve(text, kinds=("thread", "checkpoint")).thread_id
    return frozenset(thread.thread_id for thread in reader.family(own)) | {own}


def list_approvals(database: Path, wanted: ApprovalFilter, *, as_json: bool) -> None:
    """Print the calls that wait for an approval; questions already answered stand apart.

    Raises:
        UsageError: a filter can fit nothing.
        UnknownId: there is no such thread.
    """
    wanted.require_sense()
    asked, shared, workspaces = _read(database, wanted)
    waiting = [view for view in asked if view.is_waiting]
    answered = [view for view in asked if not view.is_waiting]
    if as_json:
        print_json(
            {
                "approvals": [approval_json(view, shared) for view in waiting],
                "answered": [approval_json(view, shared) for view in answered],
            }
        )
    else:
        print_lines(_lines(waiting, answered, shared, workspaces))


def _read(database: Path, wanted: ApprovalFilter) -> tuple[list[CallView], frozenset[str], dict[str, str]]:
    try:
        with Reader.open(database) as reader:
            threads = _family(reader, wanted.thread)
            asked = [view for view in reader.approvals() if wanted.fits(view, threads)]
            of = {view.thread_id for view in asked}
            workspaces = {thread: place for thread, place in reader.workspaces().items() if thread in of}
            return asked, reader.shared_call_ids(), workspaces
    except NothingYet:
        if wanted.thread is not None:
            raise
        return [], frozenset(), {}


def _lines(
    waiting: list[CallView], answered: list[CallView], shared: frozenset[str], workspaces: dict[str, str]
) -> Iterator[str]:
    has_places = len(set(workspaces.values())) > 1
    color = get_colorizer()
    for view in waiting:
        place = f" in {workspaces[view.thread_id]}" if has_places else ""
        yield from _question_lines(view, shared, place, color)
        yield ""
    for view in answered:
        answer = view.answer
        if answer is not None:
            name = call_name(view.thread_id, view.record["call_id"], shared)
            yield escape(f"{name} was answered: {answer.kind} by {answer.by}; its thread has not taken it in")
    if any(view.record.get("wants_answer") for view in waiting):
        yield "Answer a question with: graph-agent approvals answer CALL TEXT"
    if not all(view.record.get("wants_answer") for view in waiting):
        yield "Answer with: graph-agent approvals approve CALL, or approvals reject CALL --reason TEXT"
    if not waiting and not answered:
        yield "Nothing waits for an approval."


def _question_lines(
    view: CallView, shared: frozenset[str], place: str, color: Callable[[str, str], str]
) -> Iterator[str]:
    record = view.record
    risk = str(record.get("risk", "medium"))
    name = call_name(view.thread_id, record["call_id"], shared)
    about = escape(f"{name}  {record['tool_name']}")
    yield f"{color(about, 'heading')}  {color(escape(risk.upper()), risk)}"
    yield escape(f"  thread {view.thread_id}{place}, asked {format_time_and_age(record.get('asked_at'))}")
    if record.get("reason"):
        yield escape(f"  {record['reason']}")
    lines = escape(_shown(record).rstrip("\n"), multiline=True).split("\n")
    yield from (f"  │ {line}" for line in lines[:_FIRST_LINES])
    if len(lines) > _FIRST_LINES:
        yield f"  │ … {len(lines) - _FIRST_LINES} more lines; --json has them all"


def _shown(record: Mapping[str, Any]) -> str:
    """What is to be decided about: a question in its own words, the change a call would make, or its arguments."""
    arguments = record["arguments"]
    if record.get("wants_answer"):
        options = [f"{number}. {option}" for number, option in enumerate(arguments.get("options") or (), 1)]
        return "\n".join([str(arguments.get("question", "")), *options])
    preview = record.get("preview") or {}
    shown = str(preview.get("text") or json.dumps(arguments, indent=2, ensure_ascii=False))
    command = arguments.get("command")
    if not isinstance(command, str) or preview.get("kind") != "text":
        return shown
    return f"{'in the background ' if arguments.get('background') else ''}$ {command}\n{shown}"


def approval_json(view: CallView, shared: frozenset[str]) -> dict[str, Any]:
    """A question in the shape others script against; `answered_by` where somebody answered it."""
    record = view.record
    shown = {
        "call_id": call_name(view.thread_id, view.record["call_id"], shared),
        "thread_id": view.thread_id,
        "tool_name": record["tool_name"],
        "arguments": record["arguments"],
        "risk": record.get("risk", "medium"),
        "reason": record.get("reason", ""),
        "asked_at": record.get("asked_at"),
        "preview": record.get("preview"),
        "attempt": record.get("attempt", 1),
        "kind": record.get("kind"),
        "display": record.get("display", ""),
        "digest": record.get("digest"),
        "wants_answer": bool(record.get("wants_answer")),
    }
    if view.answer is None:
        return shown
    answer = view.answer
    return {**shown, "answer": answer.kind, "answered_by": answer.by, "answered_at": answer.at}
