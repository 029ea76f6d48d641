"""`fork` and `rewind`: the preview of a rewind, and the result of each command."""

import asyncio
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from graph_agent.app.reader import read_database
from graph_agent.cli.views.format import confirm
from graph_agent.cli.views.table import command_hint, print_lines, print_result
from graph_agent.config.paths import own_command
from graph_agent.errors import AgentError, UsageError
from graph_agent.ports.stored_text import plain_text
from graph_agent.wording import escape, format_age, format_count

if TYPE_CHECKING:
    from graph_agent.app.rewind import RewindOutcome
    from graph_agent.app.threads import Forked
    from graph_agent.cli.prompts.menu import Menu
    from graph_agent.inspect import HistoryEntry
    from graph_agent.ports import RewindScope
    from graph_agent.session.time_travel import RewindPlan


__all__ = [
    "REWIND_SCOPES",
    "RewindPoint",
    "choose_rewind_point",
    "confirm_rewind",
    "find_rewind_points",
    "is_thread",
    "print_fork",
    "print_rewind",
    "rewind_menu",
]

REWIND_SCOPES: dict[str, "RewindScope"] = {"chat and files": "both", "chat": "chat", "files": "files"}
"""What a menu of messages calls each scope."""


@dataclass(frozen=True, slots=True)
class RewindPoint:
    """A message of the user, and the checkpoint before it."""

    number: int
    """The first message of the conversation is 1."""
    checkpoint_id: str
    at: str
    text: str
    files: tuple[str, ...]
    """What was changed from this message to the next one, relative to the workspace where it is in it."""
    is_first: bool = False
    """Nothing of the conversation was before it: the checkpoint, which holds the files, is that of the message."""


def find_rewind_points(database: Path, thread_id: str) -> list[RewindPoint]:
    """The messages of the user that a rewind can go back to, newest first."""
    with read_database(database) as reader:
        messages = [entry for entry in reader.iter_messages(thread_id) if entry.role in ("user", "human")]
        history = {entry.checkpoint_id: entry for entry in reader.history(thread_id)}
        workspace = Path(reader.thread(thread_id).workspace)
        done = [one for member in reader.family(thread_id) for one in reader.done(member.thread_id)]
    points = []
    ends = [*(after.at for _, after in pairwise(messages)), "~"] if messages else []
    for number, (message, end) in enumerate(zip(messages, ends, strict=True), 1):
        entry = _entry_of(message.checkpoint_id, history)
        is_first = number == 1 and entry is not None and entry.parent_id is None
        checkpoint = entry and (entry.checkpoint_id if is_first else entry.parent_id)
        if not checkpoint or checkpoint not in history:
            continue  # It was pruned.
        files: dict[str, None] = {}
        for one in done:
            if message.at <= one.started_at < end:
                # A change that failed has changed nothing.
                path = Path(one.intent.path) if one.intent is not None and one.status != "error" else None
                if path is not None:
                    files[str(path.relative_to(workspace) if path.is_relative_to(workspace) else path)] = None
                files.update(dict.fromkeys(one.changed_files or ()))
        text = plain_text(message.body.get("content"))
        points.append(RewindPoint(number, checkpoint, message.at, text, tuple(files), is_first))
    return points[::-1]


def _entry_of(checkpoint_id: str, history: "dict[str, HistoryEntry]") -> "HistoryEntry | None":
    """The checkpoint that took in the message of a stored one; None if it was pruned."""
    entry = history.get(checkpoint_id)
    was_added = entry is not None and entry.node == "reasoning"  # to a turn that was running
    while entry is not None and entry.source != "input" and not was_added:
        entry = history.get(entry.parent_id or "")
    return entry


def rewind_menu(database: Path, thread_id: str, points: list[RewindPoint]) -> "Menu":
    """A menu of the messages; its variants are the scopes, and its details what changed in files since then."""
    from graph_agent.cli.prompts.menu import Menu, Row  # the other commands need no keyboard

    rows = [
        Row(
            point.checkpoint_id,
            (str(point.number), format_age(point.at)),
            " ".join(point.text.split()),
            ", ".join(point.files) or "–",
        )
        for point in points
    ]
    times = {point.checkpoint_id: point.at for point in points}
    known: dict[str, list[str]] = {}

    def diff_since(checkpoint_id: str) -> list[str]:
        if checkpoint_id not in known:
            known[checkpoint_id] = _diff_lines(database, thread_id, times[checkpoint_id])
        return known[checkpoint_id]

    scopes = dict(zip("bcf", REWIND_SCOPES, strict=True))
    return Menu("Rewind to before", rows, scopes, details=diff_since)


def _diff_lines(database: Path, thread_id: str, since: str) -> list[str]:
    """What changed in files from a time on, as unified diffs."""
    from graph_agent.app.file_changes import thread_changes  # reads files; the other commands do not

    try:
        changes = thread_changes(database, thread_id, None, since)
    except AgentError as failure:
        return [str(failure)]
    lines = [line for file in changes.files for line in file.diff.splitlines()]
    commands = [f"{', '.join(one.files)}: changed by $ {one.command}" for one in changes.by_commands]
    return [*lines, *commands] or ["No files changed."]


def choose_rewind_point(database: Path, text: str, here: str | None) -> "tuple[str, RewindScope]":
    """In a terminal, let the person choose one of a thread's messages: THREAD:CHECKPOINT, and what to restore.

    Raises:
        UsageError: there is none, or the person leaves the menu.
        UnknownId: there is no such thread.
    """
    from graph_agent.cli.prompts.terminal import Terminal  # the other forms need no keyboard

    with read_database(database) as reader:
        thread_id = reader.resolve(text, here).thread_id
    points = find_rewind_points(database, thread_id)
    if not points:
        raise UsageError(f"Thread {thread_id} has no message to rewind to.")
    terminal = Terminal()
    with terminal.held():
        picked = asyncio.run(terminal.choose(rewind_menu(database, thread_id, points)))
    if picked is None:
        raise UsageError("Nothing was changed.")
    scope = REWIND_SCOPES[picked.variant]
    if scope != "files" and any(point.is_first for point in points if point.checkpoint_id == picked.key):
        new = f"Before its first message there is no conversation: start a new thread with `{own_command()}`."
        if scope == "chat":
            raise UsageError(new)
        print_lines([f"{new} Only the files are rewound."])
        scope = "files"
    return f"{thread_id}:{picked.key}", scope


def is_thread(database: Path, text: str, here: str | None) -> bool:
    """Whether the text names a thread, or nothing, and not a checkpoint."""
    with read_database(database) as reader:
        return reader.resolve(text, here, ("thread", "checkpoint")).kind == "thread"


def confirm_rewind(survey: "RewindPlan") -> bool:
    """Show what a rewind changes and ask whether to do it.

    Raises:
        UsageError: stdin ended.
    """
    from graph_agent.app.rewind import format_survey

    print_lines(format_survey(survey))
    return confirm("Continue?", hint="Use --yes to skip the question.")


def print_rewind(done: "RewindOutcome", *, is_dry: bool, as_json: bool, was_shown: bool) -> None:
    """Print the result of a rewind. Exit code 1 if it was not done, or not completely."""
    from graph_agent.app.rewind import reverted_calls

    plan, rewind = done.plan, done.plan.rewind
    result = {
        "thread_id": rewind.thread_id,
        "checkpoint_id": rewind.checkpoint_id,
        "scope": rewind.scope,
        "done": done.is_done,
        "head": done.head,
        "files": [
            {"path": one.path, "action": "remove" if one.target.sha256 is None else "restore"}
            for one in rewind.files
        ],
        "conflicts": [{"path": one.path, "reason": one.why} for one in plan.conflicts],
        "reverted_calls": reverted_calls(rewind) if rewind.reverts is None else [],
        "cannot_be_undone": [
            {
                "call_id": call.call_id,
                "tool_name": call.tool_name,
                "arguments": dict(call.arguments),
                "changed_files": None if call.changed_files is None else list(call.changed_files),
            }
            for call in plan.irreversible
        ],
        "unchanged": list(done.left),
        "finished_first": None if done.finished is None else done.finished.checkpoint_id,
    }
    print_result(result, _result_lines(done, is_dry=is_dry, was_shown=was_shown), as_json=as_json)
    if done.left or not (done.is_done or is_dry):
        raise typer.Exit(1)


def _result_lines(done: "RewindOutcome", *, is_dry: bool, was_shown: bool) -> Iterator[str]:
    if done.finished is not None:
        yield escape(f"First finished an interrupted rewind to {done.finished.checkpoint_id}.")
    if not was_shown:
        from graph_agent.app.rewind import format_survey

        yield from format_survey(done.plan)
    yield from (escape(f"Not changed: {why}") for why in done.left)
    if done.is_done:
        yield escape(f"Done. The thread is at checkpoint {done.head}.")
        if done.plan.rewind.reverts is None:
            undo = command_hint(f"rewind --undo {done.plan.rewind.thread_id}", "/rewind --undo")
            yield escape(f"Undo with: {undo}")
    elif is_dry:
        yield "Dry run: nothing was changed."
    elif done.plan.conflicts and not was_shown:
        yield "Nothing was changed. --force restores these files too; --chat-only keeps all files."
    else:
        yield "Nothing was changed."


def print_fork(made: "Forked", *, as_json: bool) -> None:
    """Print the new thread and how to resume it."""
    turns = format_count(made.turns, "turn")
    lines = [f"Forked thread {made.parent_thread} at checkpoint {made.checkpoint_id}: {turns}"]
    if made.open_calls:
        lines.append(f"{format_count(made.open_calls, 'open call')}: approval is requested again")
    lines.append(f"Resume with: {own_command()} resume {made.thread_id}")
    print_result(asdict(made), map(escape, lines), as_json=as_json)
