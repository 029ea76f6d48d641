"""Answer a pending approval from the command line, and print which answer counts: the first one does."""

import asyncio
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import typer

from graph_agent.app.approvals import RecordedAnswer, answer_approval
from graph_agent.app.reader import read_database
from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.format import resolve_database
from graph_agent.cli.views.table import format_time, print_json, print_lines
from graph_agent.errors import UsageError

__all__ = ["answer_call", "approve_always", "edit_call", "format_next_step", "parse_object"]


def answer_call(
    call: str, kind: Literal["approve", "answer", "reject"], reason: str, db: str | None, *, as_json: bool
) -> None:
    """Answer a call. Exit code 1 if another answer was first."""
    given = asyncio.run(answer_approval(resolve_database(db), call, kind, by=_author(), reason=reason))
    _print_answer(given, db, as_json=as_json)


def edit_call(call: str, text: str, db: str | None, *, as_json: bool) -> None:
    """Approve a call with edited arguments. Exit code 1 if another answer was first.

    Raises:
        UsageError: the text is not a JSON object.
    """
    from graph_agent.app.approval_policy import edit_approval

    arguments = parse_object(text, "--arguments")
    given = asyncio.run(edit_approval(resolve_database(db), call, arguments, by=_author()))
    _print_answer(given, db, as_json=as_json)


def approve_always(
    call: str, scope: Literal["thread", "project", "user"], db: str | None, *, as_json: bool
) -> None:
    """Approve a call, and allow matching calls from now on. Exit code 1 if another answer was first."""
    from graph_agent.app.approval_policy import allow_always

    given, always = asyncio.run(allow_always(resolve_database(db), call, scope, by=_author()))
    permission = {"always": {"scope": always.scope, "rules": list(always.rules)}}
    _print_answer(given, db, as_json=as_json, details=permission if given.accepted else {})
    if not as_json:
        print_lines(escape(f"Always allowed, scope {always.scope}: {rule}") for rule in always.rules)
        print_lines(["List permissions: graph-agent policy list. Revoke one: graph-agent policy revoke ID"])


def format_next_step(thread_id: str, database: Path) -> str:
    """What happens after an answer, which runs nothing itself."""
    with read_database(database) as reader:
        owner = reader.top_thread(thread_id)
        holder = reader.thread(owner).holder
    if holder is None:
        return f"Resume with: graph-agent resume {owner}"
    return f"Process {holder.pid} has the thread open and continues now."


def parse_object(text: str, source: str) -> dict[str, Any]:
    """A JSON object from the command line.

    Raises:
        UsageError: the text is not a JSON object; the message names `source`, the option or argument.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f'{source} {text!r} is not JSON ({error}). Example: {{"command": "git status"}}'
        ) from error
    if not isinstance(value, dict):
        raise UsageError(f'{source} {text!r} is not a JSON object. Example: {{"command": "git status"}}')
    return value


def _author() -> str:
    return f"cli pid {os.getpid()}"


def _print_answer(
    given: RecordedAnswer, db: str | None, *, as_json: bool, details: dict[str, Any] | None = None
) -> None:
    if as_json:
        print_json({**asdict(given), **(details or {})})
    elif given.accepted:
        next_step = format_next_step(given.thread_id, resolve_database(db))
        print_lines([escape(f"{given.kind}: {given.call_id} of thread {given.thread_id}"), escape(next_step)])
    else:
        at = format_time(given.at)
        print_lines([escape(f"{given.call_id} was already answered: {given.kind} by {given.by}, {at}")])
    if not given.accepted:
        raise typer.Exit(1)
