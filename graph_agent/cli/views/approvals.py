"""`approvals`: what waits for an answer, and what came of giving one."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graph_agent.cli.escape import escape
from graph_agent.cli.views.screen import colored, local_time, print_json, print_lines
from graph_agent.errors import NothingYet
from graph_agent.inspect import CallView, Reader

__all__ = ["list_approvals"]

_FIRST_LINES = 40


def list_approvals(database: Path, *, as_json: bool) -> None:
    """Print every call of every thread that waits for an approval; questions already answered stand apart."""
    try:
        with Reader.open(database) as reader:
            asked, shared = reader.approvals(), reader.shared_call_ids()
    except NothingYet:
        asked, shared = [], frozenset()
    waiting = [view for view in asked if view.is_waiting]
    answered = [view for view in asked if not view.is_waiting]
    if as_json:
        print_json(
            {
                "approvals": [_approval_json(view, shared) for view in waiting],
                "answered": [_approval_json(view, shared) for view in answered],
            }
        )
    else:
        print_lines(_lines(waiting, answered, shared))


def _lines(waiting: list[CallView], answered: list[CallView], shared: frozenset[str]) -> Iterator[str]:
    for view in waiting:
        yield from _question_lines(view, shared)
        yield ""
    for view in answered:
        answer = view.answer
        if answer is not None:
            yield escape(
                f"{_name(view, shared)} was answered: {answer.kind} by {answer.by}; its thread has not taken it in"
            )
    if waiting:
        yield "Answer with: graph-agent approvals approve CALL, or approvals reject CALL --reason TEXT"
    elif not answered:
        yield "Nothing waits for an approval."


def _question_lines(view: CallView, shared: frozenset[str]) -> Iterator[str]:
    record = view.record
    risk = str(record.get("risk", "medium"))
    about = escape(f"{_name(view, shared)}  {record['tool_name']}")
    yield f"{colored(about, 'heading')}  {colored(escape(risk.upper()), risk)}"
    yield escape(f"  thread {view.thread_id}, asked {local_time(record.get('asked_at'))}")
    if record.get("reason"):
        yield escape(f"  {record['reason']}")
    preview = record.get("preview") or {}
    text = preview.get("text") or json.dumps(record["arguments"], indent=2, ensure_ascii=False)
    lines = escape(str(text).rstrip("\n"), multiline=True).split("\n")
    yield from (f"  │ {line}" for line in lines[:_FIRST_LINES])
    if len(lines) > _FIRST_LINES:
        yield f"  │ … {len(lines) - _FIRST_LINES} more lines; --json has them all"


def _approval_json(view: CallView, shared: frozenset[str]) -> dict[str, Any]:
    record = view.record
    shown = {
        "call_id": _name(view, shared),
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
    }
    if view.answer is None:
        return shown
    answer = view.answer
    return {**shown, "answer": answer.kind, "answered_by": answer.by, "answered_at": answer.at}


def _name(view: CallView, shared: frozenset[str]) -> str:
    call_id: str = view.record["call_id"]
    return f"{view.thread_id}:{call_id}" if call_id in shared else call_id
