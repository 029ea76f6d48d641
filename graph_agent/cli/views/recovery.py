"""`recover`: interrupted calls with everything known about each, and their resolution."""

import asyncio
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, get_args

import typer

from graph_agent.app.approvals import format_next_step
from graph_agent.app.recovery import Decision, Interrupted, decide_calls, interrupted_calls
from graph_agent.cli.views.calls import call_json, format_block
from graph_agent.cli.views.format import format_time_and_age
from graph_agent.cli.views.table import colorize, format_time, print_json, print_lines, print_result, print_text
from graph_agent.config.paths import own_command
from graph_agent.errors import NothingYet, UsageError
from graph_agent.inspect import answer_words
from graph_agent.wording import escape

__all__ = ["DecisionKind", "list_interrupted", "resolve_calls"]

DecisionKind = Literal["retry", "done", "cancel"]
_NONE = "No interrupted calls."
_RESOLVED = {"retry": "Will run again:", "done": "Marked as done:", "cancel": "Cancelled"}
_REASONS = {
    "never_started": "approved but never started: a retry is safe",
    "outcome_unknown": "started but did not finish; it may have taken effect partly or fully",
}


def list_interrupted(database: Path, thread: str | None, *, as_json: bool) -> None:
    """Print the interrupted calls of a thread or of all threads."""
    try:
        calls = asyncio.run(interrupted_calls(database, thread))
    except NothingYet:
        if thread is not None:
            raise
        calls = []
    lines = _list_lines(calls, database) if calls else _NONE
    print_result({"calls": list(map(_call_json, calls))}, lines, as_json=as_json)


def _call_json(call: Interrupted) -> dict[str, Any]:
    found, answer = call.found, call.view.answer
    return {
        **call_json(call.view),
        "call_id": call.name,
        "partial_output": found.partial_output,
        "finding": found.finding,
        "finding_verdict": found.finding_verdict,
        "processes": list(found.processes),
        "answer": None if answer is None else {"kind": answer.kind, "by": answer.by, "at": answer.at},
    }


def _list_lines(calls: list[Interrupted], database: Path) -> Iterator[str]:
    for call in calls:
        yield from _call_lines(call)
    undecided = {call.view.thread_id for call in calls if call.view.is_interrupted}
    if undecided:
        yield f"Resolve with: {own_command()} recover --retry CALL, --done CALL --result TEXT, or --cancel CALL"
    for thread_id in dict.fromkeys(call.view.thread_id for call in calls):
        if thread_id not in undecided:
            yield escape(format_next_step(thread_id, database))


def _call_lines(call: Interrupted) -> Iterator[str]:
    record, found = call.view.record, call.found
    risk = str(record.get("risk", "medium"))
    head = colorize(escape(f"{call.name}  {record['tool_name']}"), "heading")
    yield f"{head}  {colorize(escape(risk.upper()), risk)}  attempt {record.get('attempt', 1)}"
    yield escape(f"  thread {call.view.thread_id}: {_REASONS.get(record.get('reason', ''), 'interrupted')}")
    for label in ("asked", "approved", "started"):
        if when := record.get(f"{label}_at"):
            yield escape(f"  {label} {format_time_and_age(when)}")
    yield from format_block(json.dumps(record["arguments"], indent=2, ensure_ascii=False))
    if found.partial_output:
        yield "  output so far:"
        yield from format_block(found.partial_output)
    if found.finding:
        yield escape(f"  outcome {found.finding_verdict.replace('_', ' ')}: {found.finding}")
    if found.processes:
        pids = ", ".join(map(str, found.processes))
        yield f"  still running: pid {pids} (a retry waits until they exit; terminate them with --end-processes)"
    if answer := call.view.answer:
        yield escape(f"  resolved: {answer_words(answer)}, not applied yet")
    yield ""


def resolve_calls(
    database: Path,
    thread: str | None,
    named: Mapping[DecisionKind, Sequence[str]],
    *,
    everything: str | None,
    result: str,
    end_processes: bool,
    as_json: bool,
) -> None:
    """Store decisions and print which ones count. Exit code 1 if another decision was first.

    Args:
        named: the calls of each decision.
        everything: the decision for every call that is not named.
        result: what the model receives for a call that is marked as done.

    Raises:
        UsageError: the arguments contradict each other.
    """
    kinds = get_args(DecisionKind)
    if everything not in (None, *kinds):
        raise UsageError(f"Unknown --all {everything!r}. Choose one of: {', '.join(kinds)}.")
    # `all` covers the calls that no other decision names, so it comes last.
    pairs = [(kind, call) for kind in kinds for call in named[kind]] + [
        (kind, "all") for kind in kinds if kind == everything
    ]
    pairs.sort(key=lambda pair: pair[1] == "all")
    if result and not any(kind == "done" for kind, _ in pairs):
        raise UsageError("--result needs --done CALL or --all done.")
    decisions = [Decision(kind, call, result if kind == "done" else "") for kind, call in pairs]
    by = f"cli pid {os.getpid()}"
    answers = asyncio.run(decide_calls(database, thread, decisions, by=by, end_processes=end_processes))
    if as_json:
        print_json({"calls": list(map(asdict, answers))})
    else:
        for one in answers:
            if one.accepted:
                print_text(f"{_RESOLVED[one.kind]} {one.call_id} of thread {one.thread_id}.")
            else:
                first = f"{one.kind} by {one.by}, {format_time(one.at)}"
                print_text(f"{one.call_id} was already resolved: {first}")
        for thread_id in dict.fromkeys(one.thread_id for one in answers if one.accepted):
            print_text(format_next_step(thread_id, database))
        print_lines([] if answers else [_NONE])
    if not all(one.accepted for one in answers):
        raise typer.Exit(1)
