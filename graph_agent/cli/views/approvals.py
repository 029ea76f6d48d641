"""`approvals list`: the pending approvals of all threads."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graph_agent.app.reader import read_database
from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.calls import call_name, format_block
from graph_agent.cli.views.format import age_seconds, format_time_and_age, parse_duration
from graph_agent.cli.views.table import colorize, print_json, print_lines
from graph_agent.errors import NothingYet, UsageError
from graph_agent.inspect import CallView

__all__ = ["ApprovalFilter", "approval_json", "list_approvals"]

_MAX_LINES = 40
_RISKS = ("low", "medium", "high")


@dataclass(frozen=True, slots=True)
class ApprovalFilter:
    """Which approvals are listed; None does not filter."""

    thread: str | None = None
    """Id of a thread or checkpoint; includes the thread's sub-agents."""
    tool: str | None = None
    risk: str | None = None
    older_than: str | None = None
    """Minimal waiting time, e.g. `10m`."""

    def validate(self) -> None:
        """Check the values.

        Raises:
            UsageError: the risk or the duration is invalid.
        """
        if self.risk not in (None, *_RISKS):
            raise UsageError(f"Unknown --risk {self.risk!r}. Choose one of: {', '.join(_RISKS)}.")
        self._minimal_age()

    def matches(self, view: CallView, threads: frozenset[str] | None) -> bool:
        """Whether a call is listed; `threads` are the ids that `thread` stands for."""
        record = view.record
        return (
            (threads is None or view.thread_id in threads)
            and self.tool in (None, record["tool_name"])
            and self.risk in (None, record.get("risk", "medium"))
            and (age_seconds(record.get("asked_at")) or 0) >= self._minimal_age()
        )

    def _minimal_age(self) -> float:
        return 0.0 if self.older_than is None else parse_duration(self.older_than, "--older-than")


def list_approvals(database: Path, selection: ApprovalFilter, *, as_json: bool) -> None:
    """Print the pending approvals, and separately the answered ones that no process has applied yet.

    Raises:
        UsageError: the filter is invalid.
        UnknownId: no thread matches.
    """
    selection.validate()
    views, shared, workspaces = _read(database, selection)
    pending = [view for view in views if view.is_waiting]
    answered = [view for view in views if not view.is_waiting]
    if as_json:
        print_json(
            {
                "approvals": [approval_json(view, shared) for view in pending],
                "answered": [approval_json(view, shared) for view in answered],
            }
        )
    else:
        print_lines(_lines(pending, answered, shared, workspaces))


def approval_json(view: CallView, shared: frozenset[str]) -> dict[str, Any]:
    """A call in the JSON shape of `approvals list`; `answered_by` and `answered_at` if it was answered."""
    record = view.record
    facts = {
        "call_id": call_name(view.thread_id, record["call_id"], shared),
        "thread_id": view.thread_id,
        "tool_name": record["tool_name"],
        "arguments": record["arguments"],
        "risk": record.get("risk", "medium"),
        "reason": record.get("reason", ""),
        "asked_at": record.get("asked_at"),
        "preview": record.get("preview"),
        "attempt": record.get("attempt", 1),
        "kind": record.get("kind"),
        "summary": record.get("summary", ""),
        "args_digest": record.get("args_digest"),
        "requires_input": bool(record.get("requires_input")),
    }
    if view.answer is None:
        return facts
    answer = view.answer
    return {**facts, "answer": answer.kind, "answered_by": answer.by, "answered_at": answer.at}


def _read(database: Path, selection: ApprovalFilter) -> tuple[list[CallView], frozenset[str], dict[str, str]]:
    try:
        with read_database(database) as reader:
            threads = None
            if selection.thread:
                own = reader.resolve(selection.thread, kinds=("thread", "checkpoint")).thread_id
                threads = frozenset(thread.thread_id for thread in reader.family(own)) | {own}
            views = [view for view in reader.approvals() if selection.matches(view, threads)]
            shown = {view.thread_id for view in views}
            workspaces = {thread: folder for thread, folder in reader.workspaces().items() if thread in shown}
            return views, reader.shared_call_ids(), workspaces
    except NothingYet:
        if selection.thread is not None:
            raise
        return [], frozenset(), {}


def _lines(
    pending: list[CallView], answered: list[CallView], shared: frozenset[str], workspaces: dict[str, str]
) -> Iterator[str]:
    has_workspaces = len(set(workspaces.values())) > 1
    for view in pending:
        workspace = f" in {workspaces[view.thread_id]}" if has_workspaces else ""
        yield from _approval_lines(view, shared, workspace)
        yield ""
    for view in answered:
        if (answer := view.answer) is not None:
            name = call_name(view.thread_id, view.record["call_id"], shared)
            yield escape(f"{name} is answered ({answer.kind} by {answer.by}) but not applied yet.")
    if any(view.record.get("requires_input") for view in pending):
        yield "Answer a question with: graph-agent approvals answer CALL TEXT"
    if not all(view.record.get("requires_input") for view in pending):
        yield "Respond with: graph-agent approvals approve CALL, or approvals reject CALL --reason TEXT"
    if not pending and not answered:
        yield "No pending approvals."


def _approval_lines(view: CallView, shared: frozenset[str], workspace: str) -> Iterator[str]:
    record = view.record
    risk = str(record.get("risk", "medium"))
    name = call_name(view.thread_id, record["call_id"], shared)
    head = colorize(escape(f"{name}  {record['tool_name']}"), "heading")
    yield f"{head}  {colorize(escape(risk.upper()), risk)}"
    yield escape(f"  thread {view.thread_id}{workspace}, asked {format_time_and_age(record.get('asked_at'))}")
    if record.get("reason"):
        yield escape(f"  {record['reason']}")
    lines = list(format_block(_subject(record).rstrip("\n")))
    yield from lines[:_MAX_LINES]
    if len(lines) > _MAX_LINES:
        yield f"  │ … {len(lines) - _MAX_LINES} more lines; --json shows all"


def _subject(record: Mapping[str, Any]) -> str:
    """The text to decide on: a question with its options, the preview of a change, or the arguments."""
    arguments = record["arguments"]
    if record.get("requires_input"):
        options = [f"{number}. {option}" for number, option in enumerate(arguments.get("options") or (), 1)]
        return "\n".join([str(arguments.get("question", "")), *options])
    preview = record.get("preview") or {}
    text = str(preview.get("text") or json.dumps(arguments, indent=2, ensure_ascii=False))
    command = arguments.get("command")
    if not isinstance(command, str) or preview.get("kind") != "text":
        return text
    return f"{'in the background ' if arguments.get('background') else ''}$ {command}\n{text}"
