"""`recover`: interrupted calls with what is known of each, and what came of deciding them."""

import asyncio
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import typer

from graph_agent.app.recovery import Decision, Interrupted, decide_calls, interrupted_calls
from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.answers import format_next_step
from graph_agent.cli.views.calls import call_json
from graph_agent.cli.views.format import format_time_and_age
from graph_agent.cli.views.table import colorize, format_time, print_json, print_lines
from graph_agent.errors import NothingYet, UsageError

__all__ = ["RecoveryChoices", "list_interrupted", "resolve_calls"]

_Kind = Literal["retry", "done", "cancel"]
_HAPPENED = {
    "never_started": "let through and never started: a retry is safe",
    "outcome_unknown": "started and broken off: its effect may be there, in part or in whole",
}


@dataclass(frozen=True, slots=True)
class RecoveryChoices:
    """What the options say."""

    retry: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    cancel: tuple[str, ...] = ()
    everything: str | None = None
    """The decision for every call that is not named."""
    result: str = ""

    @property
    def are_made(self) -> bool:
        """Whether anything is to be decided."""
        return bool(self.retry or self.done or self.cancel or self.everything or self.result)

    def decisions(self) -> list[Decision]:
        """One per call that is named, and one for the others.

        Raises:
            UsageError: the options do not make sense together.
        """
        named: tuple[tuple[_Kind, tuple[str, ...]], ...] = (
            ("retry", self.retry),
            ("done", self.done),
            ("cancel", self.cancel),
        )
        decisions = [Decision(kind, call, self._told(kind)) for kind, calls in named for call in calls]
        if self.everything is not None:
            decisions.append(Decision(self._everything(), "all", self._told(self.everything)))
        if self.result and not any(decision.kind == "done" for decision in decisions):
            raise UsageError("--result says what a call did, which goes with --done CALL or --all done")
        return decisions

    def _everything(self) -> _Kind:
        for kind in get_args(_Kind):
            if kind == self.everything:
                return kind  # type: ignore[no-any-return]  # one of the literal's own values
        raise UsageError(f"--all {self.everything!r} is no decision; use one of: {', '.join(get_args(_Kind))}")

    def _told(self, kind: str) -> str:
        return self.result if kind == "done" else ""


def list_interrupted(database: Path, thread: str | None, *, as_json: bool) -> None:
    """Print the calls of a thread, or of all, that were broken off."""
    try:
        calls = asyncio.run(interrupted_calls(database, thread))
    except NothingYet:
        if thread is not None:
            raise
        calls = []
    if as_json:
        print_json({"calls": [_call_json(call) for call in calls]})
    elif calls:
        print_lines(line for call in calls for line in _call_lines(call))
        print_lines(_next_steps(calls, database))
    else:
        print_lines(["Nothing was broken off."])


def resolve_calls(
    database: Path, thread: str | None, choices: RecoveryChoices, *, end_processes: bool, as_json: bool
) -> None:
    """Record what the options say and tell what stands now; exit code 1 when something else stood before."""
    by = f"cli pid {os.getpid()}"
    given = asyncio.run(decide_calls(database, thread, choices.decisions(), by=by, end_processes=end_processes))
    if as_json:
        print_json({"calls": [asdict(one) for one in given]})
    else:
        for one in given:
            told = f"{one.kind}: {one.call_id} of thread {one.thread_id}"
            if not one.accepted:
                told = f"{one.call_id} was decided before: {one.kind} by {one.by}, {format_time(one.at)}"
            print_lines([escape(told)])
        for thread_id in dict.fromkeys(one.thread_id for one in given if one.accepted):
            print_lines([escape(format_next_step(thread_id, database))])
        if not given:
            print_lines(["Nothing was broken off."])
    if not all(one.accepted for one in given):
        raise typer.Exit(1)


def _next_steps(calls: list[Interrupted], database: Path) -> Iterator[str]:
    if any(call.view.is_interrupted for call in calls):
        yield "Decide with: graph-agent recover --retry CALL, --done CALL --result TEXT, or --cancel CALL"
    open_threads = {call.view.thread_id for call in calls if call.view.is_interrupted}
    for thread_id in dict.fromkeys(call.view.thread_id for call in calls):
        if thread_id not in open_threads:
            yield escape(format_next_step(thread_id, database))


def _call_json(call: Interrupted) -> dict[str, Any]:
    found, answer = call.found, call.view.answer
    decided = None if answer is None else {"kind": answer.kind, "by": answer.by, "at": answer.at}
    return {
        **call_json(call.view),
        "call_id": call.name,
        "partial_output": found.partial_output,
        "finding": found.finding,
        "finding_verdict": found.finding_verdict,
        "processes": list(found.processes),
        "answer": decided,
    }


def _call_lines(call: Interrupted) -> Iterator[str]:
    record, found = call.view.record, call.found
    risk = str(record.get("risk", "medium"))
    about = escape(f"{call.name}  {record['tool_name']}")
    level = colorize(escape(risk.upper()), risk)
    yield f"{colorize(about, 'heading')}  {level}  attempt {record.get('attempt', 1)}"
    yield escape(f"  thread {call.view.thread_id}: {_HAPPENED.get(record.get('reason', ''), 'broken off')}")
    for label, key in (("asked", "asked_at"), ("approved", "approved_at"), ("started", "started_at")):
        if when := record.get(key):
            yield escape(f"  {label} {format_time_and_age(when)}")
    yield from _block(json.dumps(record["arguments"], indent=2, ensure_ascii=False))
    if found.partial_output:
        yield "  what it wrote until then:"
        yield from _block(found.partial_output)
    if found.finding:
        yield escape(f"  finding: {found.finding_verdict.replace('_', ' ')}: {found.finding}")
    if found.processes:
        pids = ", ".join(map(str, found.processes))
        yield f"  still running: pid {pids} (--end-processes ends them, and a retry waits for that)"
    if answer := call.view.answer:
        yield escape(f"  decided: {answer.kind} by {answer.by}; its thread has not taken it in")
    yield ""


def _block(text: str) -> Iterator[str]:
    yield from (f"  │ {line}" for line in escape(text, multiline=True).split("\n"))
