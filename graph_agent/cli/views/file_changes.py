"""`threads diff`: what a thread changed in its workspace, as a unified diff that `patch` and `git apply` read."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from graph_agent.app.file_changes import Changes, changes_of
from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.format import format_names
from graph_agent.cli.views.table import print_json, print_lines

__all__ = ["show_changes"]


def show_changes(database: Path, text: str, here: str | None, *, as_json: bool) -> None:
    """Print the changes of one thread."""
    changes = changes_of(database, text, here)
    if as_json:
        print_json(asdict(changes))
    else:
        print_lines(_lines(changes))


def _lines(changes: Changes) -> Iterator[str]:
    if not (changes.files or changes.by_commands):
        yield escape(f"thread {changes.thread_id} left no file of {changes.workspace} changed")
    for one in changes.by_commands:
        command = one.command.strip().split("\n", 1)[0]
        yield escape(f"# not shown: {format_names(one.files, one.more)}: changed by $ {command}")
    for file in changes.files:
        if file.status == "unreadable":
            yield escape(f"# {file.path}: not shown: {file.by_others}")
            continue
        if file.by_others:
            yield escape(f"# {file.path}: {file.by_others}")
        yield from (escape(line) for line in file.diff.removesuffix("\n").split("\n"))
