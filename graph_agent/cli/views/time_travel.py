"""What is shown of a rewind: what it will do, what it cannot undo, what stops it, and what came of it.

What is told of a fork.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.format import confirm, format_count, format_names
from graph_agent.cli.views.table import print_json, print_lines

if TYPE_CHECKING:
    from graph_agent.app.rewind import Rewound
    from graph_agent.app.threads import Forked
    from graph_agent.ports import Done, Rewind
    from graph_agent.session.time_travel import Survey


__all__ = ["confirm_rewind", "format_survey", "print_fork", "print_rewind"]

_SCOPES = {"both": "conversation and files", "files": "files only", "chat": "conversation only"}


def confirm_rewind(seen: "Survey") -> bool:
    """Show what a rewind takes and ask whether to do it.

    Raises:
        UsageError: nobody is there to answer.
    """
    print_lines(format_survey(seen))
    return confirm("Go on?", otherwise="--yes goes on without asking")


def print_rewind(done: "Rewound", *, is_dry: bool, as_json: bool, was_shown: bool) -> None:
    """Tell what came of it; exit code 1 when it was wanted and not done, or not in full."""
    if as_json:
        print_json(_as_json(done))
    else:
        print_lines(_outcome_lines(done, is_dry=is_dry, was_shown=was_shown))
    if done.left or not (done.is_done or is_dry):
        raise typer.Exit(1)


def format_survey(seen: "Survey") -> Iterator[str]:
    """What a rewind will do, what it cannot undo and what stops it."""
    rewind = seen.rewind
    what = "undo the rewind, back to" if rewind.undoes is not None else "rewind to"
    yield escape(f"{what} checkpoint {rewind.checkpoint_id} of thread {rewind.thread_id}: {_SCOPES[rewind.scope]}")
    for one in rewind.files:
        verb = "remove  " if one.then.sha256 is None else "create  " if one.now.sha256 is None else "put back"
        yield escape(f"  {verb}  {one.path}")
    if not rewind.files and rewind.scope != "chat":
        yield "  no file is changed"
    calls = len(_undone(rewind))
    if calls and rewind.scope != "files":
        counts = "counts" if calls == 1 else "count"
        yield f"  {format_count(calls, 'call')} after it {counts}{'' if rewind.undoes else ' as undone'}"
    if seen.lasting:
        yield "cannot be undone, what they did stays:"
    for call in seen.lasting:
        yield escape(f"  {_about(call)}")
        if call.changed_files is not None:
            yield escape(f"    changed: {format_names(call.changed_files, call.changed_files_more)}")
    for conflict in seen.conflicts:
        yield escape(f"conflict: {conflict.path}: {conflict.why}")


def _outcome_lines(done: "Rewound", *, is_dry: bool, was_shown: bool) -> Iterator[str]:
    if done.finished is not None:
        yield escape(f"finished first: a rewind to {done.finished.checkpoint_id} that had been broken off")
    if not was_shown:
        yield from format_survey(done.survey)
    yield from (escape(f"left as it is: {why}") for why in done.left)
    if done.is_done:
        yield escape(f"done; the thread stands at checkpoint {done.head}")
        if done.survey.rewind.undoes is None:
            yield escape(f"take it back with: graph-agent rewind --undo {done.survey.rewind.thread_id}")
    elif is_dry:
        yield "nothing was changed: this was a dry run"
    elif done.survey.conflicts and not was_shown:
        yield "nothing was changed; --force puts these files back all the same, --chat-only leaves all files alone"
    else:
        yield "nothing was changed"


def _as_json(done: "Rewound") -> dict[str, Any]:
    rewind = done.survey.rewind
    return {
        "thread_id": rewind.thread_id,
        "checkpoint_id": rewind.checkpoint_id,
        "scope": rewind.scope,
        "done": done.is_done,
        "head": done.head,
        "files": [
            {"path": one.path, "action": "remove" if one.then.sha256 is None else "restore"} for one in rewind.files
        ],
        "conflicts": [{"path": one.path, "reason": one.why} for one in done.survey.conflicts],
        "undone_calls": _undone(rewind) if rewind.undoes is None else [],
        "cannot_be_undone": [
            {
                "call_id": call.call_id,
                "tool_name": call.tool_name,
                "arguments": dict(call.arguments),
                "changed_files": None if call.changed_files is None else list(call.changed_files),
            }
            for call in done.survey.lasting
        ],
        "left": list(done.left),
        "finished_first": None if done.finished is None else done.finished.checkpoint_id,
    }


def _undone(rewind: "Rewind") -> list[str]:
    """The calls that count as undone, or again, those of sub-agents last."""
    below = [call for one in rewind.sub_agents for call in one.calls]
    return [call_id for call_id, _ in (*rewind.calls, *below)]


def _about(call: "Done") -> str:
    command = call.arguments.get("command")
    place = "in the background " if call.arguments.get("background") else ""
    return f"{place}$ {command}" if command else f"{call.tool_name or 'a call'} {json.dumps(dict(call.arguments))}"


def print_fork(made: "Forked", *, as_json: bool) -> None:
    """Print where the new thread comes from and how to go on with it."""
    if as_json:
        print_json(asdict(made))
        return
    told = [
        f"forked thread {made.parent_thread} at {made.checkpoint_id}: {format_count(made.turns, 'turn')}",
        f"go on with: graph-agent resume {made.thread_id}",
    ]
    if made.open_calls:
        told.insert(1, f"{format_count(made.open_calls, 'call')} of it will be asked about again")
    print_lines(escape(line) for line in told)
