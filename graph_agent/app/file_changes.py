"""What a thread and its sub-agents changed: each file before its first change, compared with the file now."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from graph_agent.app.reader import read_database
from graph_agent.errors import StorageError
from graph_agent.ports import ExecutedAttempt
from graph_agent.ports.time_travel import changes_by_path, find_foreign_change
from graph_agent.storage import open_blobs
from graph_agent.storage.blobs import FileBlobs
from tools.diff import diff_texts
from tools.files import sha256_hex, snapshot_at
from tools.paths import PathRefused, containing_root, shown_path
from tools.text import decode, is_binary

__all__ = ["ChangedByCommand", "ChangedFile", "Changes", "thread_changes"]


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """One file."""

    path: str
    """Relative to the workspace; absolute if it is elsewhere or cannot be read."""
    status: Literal["created", "modified", "removed", "unreadable"]
    diff: str = ""
    """Unified; for binary content one line that says so."""
    added: int = 0
    removed: int = 0
    by_others: str = ""
    """What somebody else did to it; that is in the diff too."""


@dataclass(frozen=True, slots=True)
class ChangedByCommand:
    """Files that changed while a command ran; their contents were not kept."""

    call_id: str
    command: str
    files: tuple[str, ...]
    """Relative to the workspace."""
    more: int = 0
    """How many besides."""


@dataclass(frozen=True, slots=True)
class Changes:
    """All files of a thread that are not what they were."""

    thread_id: str
    workspace: str
    files: tuple[ChangedFile, ...]
    by_commands: tuple[ChangedByCommand, ...] = ()
    """Oldest first; only of commands with files compared before and after, and changed."""


def thread_changes(database: Path, text: str, here: str | None, since: str = "") -> Changes:
    """Compare the files. For files that commands changed, only the names are known.

    Args:
        since: only what changed from this stored time on.

    Raises:
        UnknownId: no id matches the text, or several do.
        NothingYet: there is no database.
    """
    with read_database(database) as reader:
        thread = reader.thread(reader.resolve(text, here).thread_id)
        attempts = [one for member in reader.family(thread.thread_id) for one in reader.done(member.thread_id)]
        roots = [Path(root).resolve() for root in (thread.workspace, *reader.roots(thread.thread_id))]
    attempts = sorted((one for one in attempts if one.started_at >= since), key=lambda one: one.started_at)
    blobs = open_blobs(database)
    files = (
        _compare(Path(path), changes, attempts, roots, blobs) for path, changes in changes_by_path(attempts).items()
    )
    by_commands = tuple(
        ChangedByCommand(
            one.call_id, str(one.arguments.get("command", "")), one.changed_files, one.changed_files_more
        )
        for one in attempts
        if one.changed_files
    )
    return Changes(
        thread.thread_id, thread.workspace, tuple(file for file in files if file is not None), by_commands
    )


def _compare(
    path: Path,
    changes: list[ExecutedAttempt],
    attempts: Sequence[ExecutedAttempt],
    roots: Sequence[Path],
    blobs: FileBlobs,
) -> ChangedFile | None:
    """A file that is not what it was; `roots` begin with the workspace."""
    workspace, intent = roots[0], changes[0].intent
    try:
        now = snapshot_at(path, containing_root(roots, path) or workspace).data
        before = blobs.get(intent.before_blob) if intent and intent.before_blob else None
    except (PathRefused, StorageError) as refused:
        return ChangedFile(str(path), "unreadable", by_others=str(refused))
    if now == before:
        return None
    shown = shown_path(str(path.relative_to(workspace) if path.is_relative_to(workspace) else path))
    diff, added, removed = _diff(shown, before, now)
    status: Literal["created", "modified", "removed"] = (
        "created" if before is None else "removed" if now is None else "modified"
    )
    others = find_foreign_change(None if now is None else sha256_hex(now), changes, attempts)
    return ChangedFile(shown, status, diff, added, removed, others)


def _diff(path: str, before: bytes | None, now: bytes | None) -> tuple[str, int, int]:
    if is_binary(before or b"") or is_binary(now or b""):
        return f"Binary file {path} differs\n", 0, 0
    old = None if before is None else decode(before)[0]
    found = diff_texts(path, old, decode(now or b"")[0], digests=(None, ""))
    head = f"--- {'/dev/null' if before is None else path}\n+++ {path}\n"
    text = found.unified or head
    if now is None:
        text = text.replace(head, f"--- {path}\n+++ /dev/null\n", 1)
    return text, found.added, found.removed
