"""The `approvals` commands: list the pending approvals of all threads, and answer one. The first answer counts.

What writes an answer is imported late: the list is read-only and has to be fast.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from graph_agent.app.reader import read_database
from graph_agent.calls import OUTCOMES, question_and_options
from graph_agent.cli.views.calls import format_block
from graph_agent.cli.views.format import format_time_and_age, parse_duration
from graph_agent.cli.views.table import colorize, format_time, print_result, print_text
from graph_agent.config.paths import own_command
from graph_agent.errors import NothingYet, UsageError
from graph_agent.inspect import CallView, answer_words, call_name
from graph_agent.wording import age_seconds, escape, format_count

if TYPE_CHECKING:
    from graph_agent.app.approvals import RecordedAnswer
    from graph_agent.ports import GrantEffect, GrantScope, RuleChoice


__all__ = [
    "answer_call",
    "answer_call_always",
    "approval_json",
    "edit_call",
    "list_approvals",
    "parse_object",
]

_MAX_LINES = 40
_DONE = {"approve": "Approved", "reject": "Rejected", "answer": "Answered"}
_RISKS = ("low", "medium", "high")


def list_approvals(
    database: Path,
    *,
    thread: str | None = None,
    tool: str | None = None,
    risk: str | None = None,
    older_than: str | None = None,
    as_json: bool,
) -> None:
    """Print the pending approvals, and separately the answered ones that no process has applied yet.

    Args:
        thread: id of a thread or checkpoint; its sub-agents are included.
        older_than: minimal waiting time, e.g. `10m`.

    Raises:
        UsageError: the risk or the duration is invalid.
        UnknownId: no thread matches.
    """
    if risk not in (None, *_RISKS):
        raise UsageError(f"Unknown --risk {risk!r}. Choose one of: {', '.join(_RISKS)}.")
    minimal_age = 0.0 if older_than is None else parse_duration(older_than, "--older-than")

    def matches(view: CallView) -> bool:
        return (
            tool in (None, view.record["tool_name"])
            and risk in (None, view.record.get("risk", "medium"))
            and (age_seconds(view.record.get("asked_at")) or 0) >= minimal_age
        )

    try:
        with read_database(database) as reader:
            views = [view for view in reader.approvals() if matches(view)]
            if thread:
                own = reader.resolve(thread, kinds=("thread", "checkpoint")).thread_id
                threads = {one.thread_id for one in reader.family(own)} | {own}
                views = [view for view in views if view.thread_id in threads]
            shared, workspaces = reader.shared_call_ids(), reader.workspaces()
    except NothingYet:
        if thread is not None:
            raise
        views, shared, workspaces = [], frozenset(), {}
    pending = [view for view in views if view.is_waiting]
    answered = [view for view in views if not view.is_waiting]

    def as_object() -> dict[str, Any]:
        lists = {"approvals": pending, "answered": answered}
        return {name: [approval_json(view, shared) for view in views] for name, views in lists.items()}

    print_result(as_object, _list_lines(pending, answered, shared, workspaces), as_json=as_json)


def approval_json(view: CallView, shared: frozenset[str]) -> dict[str, Any]:
    """A call in the JSON shape of `approvals list`; with its answer, if any, and the outcome that leads to."""
    record, answer = view.record, view.answer
    answered = {}
    if answer is not None:
        answered = {"answer": answer.kind, "outcome": OUTCOMES.get(answer.kind)}
        answered |= {"answered_by": answer.by, "answered_at": answer.at}
    return {
        "call_id": call_name(view.thread_id, record["call_id"], shared),
        "thread_id": view.thread_id,
        "tool_name": record["tool_name"],
        "arguments": record["arguments"],
        "risk": record.get("risk", "medium"),
        "risk_reason": record.get("risk_reason", ""),
        "reason": record.get("reason", ""),
        "asked_at": record.get("asked_at"),
        "preview": record.get("preview"),
        "attempt": record.get("attempt", 1),
        "kind": record.get("kind"),
        "summary": record.get("summary", ""),
        "args_digest": record.get("args_digest"),
        "requires_input": bool(record.get("requires_input")),
        **answered,
    }


def _list_lines(
    pending: list[CallView], answered: list[CallView], shared: frozenset[str], workspaces: Mapping[str, str]
) -> Iterator[str]:
    has_workspaces = len({workspaces.get(view.thread_id) for view in (*pending, *answered)}) > 1
    for view in pending:
        record = view.record
        risk = str(record.get("risk", "medium"))
        head = f"{call_name(view.thread_id, record['call_id'], shared)}  {record['tool_name']}"
        yield f"{colorize(escape(head), 'heading')}  {colorize(escape(risk.upper()), risk)}"
        workspace = f" in {workspaces[view.thread_id]}" if has_workspaces else ""
        asked = format_time_and_age(record.get("asked_at"))
        yield escape(f"  thread {view.thread_id}{workspace}, asked {asked}")
        if record.get("reason"):
            yield escape(f"  {record['reason']}")
        lines = list(format_block(_subject(record).rstrip("\n")))
        yield from lines[:_MAX_LINES]
        if len(lines) > _MAX_LINES:
            yield f"  │ … {format_count(len(lines) - _MAX_LINES, 'more line')}; --json shows all"
        yield ""
    for view in answered:
        if (answer := view.answer) is not None:
            name = call_name(view.thread_id, view.record["call_id"], shared)
            yield escape(f"{name} is {answer_words(answer)}, not applied yet.")
    needs_input = {bool(view.record.get("requires_input")) for view in pending}
    if True in needs_input:
        yield f"Answer a question with: {own_command()} approvals answer CALL TEXT"
    if False in needs_input:
        yield f"Respond with: {own_command()} approvals approve CALL, or approvals reject CALL --reason TEXT"
    if not pending and not answered:
        yield "No pending approvals."


def _subject(record: Mapping[str, Any]) -> str:
    """The text to decide on: a question with its options, the preview of a change, or the arguments."""
    arguments = record["arguments"]
    if record.get("requires_input"):
        question, answers = question_and_options(record)
        return "\n".join([question, *(f"{number}. {answer}" for number, answer in enumerate(answers, 1))])
    preview = record.get("preview") or {}
    text = str(preview.get("text") or json.dumps(arguments, indent=2, ensure_ascii=False))
    command = arguments.get("command")
    if not isinstance(command, str) or preview.get("kind") != "text":
        return text
    return f"{'in the background ' if arguments.get('background') else ''}$ {command}\n{text}"


def answer_call(
    database: Path, call: str, kind: Literal["approve", "answer", "reject"], reason: str, *, as_json: bool
) -> None:
    """Answer a call. Exit code 1 if another answer was first."""
    from asyncio import run

    from graph_agent.app.approvals import answer_approval

    answer = run(answer_approval(database, call, kind, by=_author(), reason=reason))
    _print_answer(database, answer, as_json=as_json)


def edit_call(database: Path, call: str, text: str, *, as_json: bool) -> None:
    """Approve a call with edited arguments. Exit code 1 if another answer was first.

    Raises:
        UsageError: the text is not a JSON object.
    """
    from asyncio import run

    from graph_agent.app.approvals import edit_approval

    answer = run(edit_approval(database, call, parse_object(text, "--arguments"), by=_author()))
    _print_answer(database, answer, as_json=as_json)


def answer_call_always(
    database: Path,
    call: str,
    always: "tuple[GrantEffect, GrantScope, RuleChoice]",
    reason: str = "",
    *,
    as_json: bool,
) -> None:
    """Answer a call, and allow or deny matching calls from now on. Exit code 1 if another answer was first."""
    from asyncio import run

    from graph_agent.app.approvals import answer_always
    from graph_agent.ports import rules_with_folders

    answer, stored, coverage = run(answer_always(database, call, always, reason, by=_author()))
    details = {"effect": "deny"} if stored.effect == "deny" else {}
    folders = {"folders": list(map(list, stored.folders))} if stored.folders else {}
    shown = {"scope": stored.scope, "rules": list(stored.rules), "coverage": coverage, **folders, **details}
    permission = {"always": shown}
    done = "allowed" if stored.effect == "allow" else "denied"
    _print_answer(database, answer, as_json=as_json, details=permission if answer.accepted else {})
    if not as_json:
        print_text(
            *(f"Always {done}, scope {stored.scope}: {text}" for text in rules_with_folders(stored)),
            *filter(None, (coverage,)),
            f"List permissions: {own_command()} policy list. Revoke one: {own_command()} policy revoke ID",
        )


def parse_object(text: str, source: str) -> dict[str, Any]:
    """A JSON object from the command line.

    Raises:
        UsageError: the text is not a JSON object; the message names `source`, the option or argument.
    """
    example = 'Example: {"command": "git status"}'
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{source} {text!r} is not JSON ({error}). {example}") from error
    if not isinstance(value, dict):
        raise UsageError(f"{source} {text!r} is not a JSON object. {example}")
    return value


def _author() -> str:
    return f"cli pid {os.getpid()}"


def _print_answer(
    database: Path, answer: "RecordedAnswer", *, as_json: bool, details: Mapping[str, Any] | None = None
) -> None:
    lines = [f"{answer.call_id} was already answered: {answer.kind} by {answer.by}, {format_time(answer.at)}"]
    if answer.accepted and not as_json:
        from graph_agent.app.approvals import format_next_step

        next_step = format_next_step(answer.thread_id, database)
        lines = [f"{_DONE.get(answer.kind, answer.kind)} {answer.call_id} of thread {answer.thread_id}.", next_step]
    print_result({**asdict(answer), **(details or {})}, map(escape, lines), as_json=as_json)
    if not answer.accepted:
        raise SystemExit(1)
