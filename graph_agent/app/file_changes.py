"""What a thread and its sub-agents changed: each file before its first change, compared with the file now."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from graph_agent.app.reader import read_database
from graph_agent.config.paths import blob_dir
from graph_agent.errors import StorageError
from graph_agent.ports import ExecutedAttempt
from graph_agent.session.file_history import changes_by_path, find_foreign_change
from graph_agent.storage.blobs import FileBlobs
from tools.diff import diff_texts
from tools.files import sha256_hex, snapshot_at
from tools.paths import PathRefused, containing_root
from tools.text import decode, is_binary

__all__ = ["ChangedByCommand", "ChangedFile", "Changes", "thread_changes"]


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """One file."""

    path: str
    """Relative to the workspace; whole where it lies elsewhere or cannot be looked at."""
    status: Literal["created", "modified", "removed", "unreadable"]
    diff: str = ""
    """Unified; for binary content one line that says so."""
    added: int = 0
    removed: int = 0
    by_others: str = ""
    """What somebody else did to it; that is in the diff too."""


@dataclass(frozen=True, slots=True)
class ChangedByCommand:
    """What a command was seen to change; its contents were not kept."""

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
    """Oldest first; only of commands that were looked at before and after and changed something."""


def thread_changes(database: Path, text: str, here: str | None) -> Changes:
    """Compare. Of what commands changed the names are known at most.

    Raises:
        UnknownId: nothing fits the text, or several ids do.
        NothingYet: there is no database.
    """
    with read_database(database) as reader:
        thread = reader.thread(reader.resolve(text, here).thread_id)
        below = [one for member in reader.family(thread.thread_id) for one in reader.done(member.thread_id)]
        roots = tuple(Path(root).resolve() for root in reader.roots(thread.thread_id))
    done = sorted(below, key=lambda one: one.started_at)
    workspace = Path(thread.workspace).resolve()
    world = _World((workspace, *roots), FileBlobs(blob_dir(database)), done)
    found = [_changed(Path(path), changes, world) for path, changes in changes_by_path(done).items()]
    files = tuple(file for file in found if file is not None)
    return Changes(thread.thread_id, thread.workspace, files, tuple(_by_commands(done)))


def _by_commands(done: Iterable[ExecutedAttempt]) -> Iterator[ChangedByCommand]:
    for one in done:
        if one.changed_files:
            command = str(one.arguments.get("command", ""))
            yield ChangedByCommand(one.call_id, command, one.changed_files, one.changed_files_more)


class _World(NamedTuple):
    roots: tuple[Path, ...]
    """The workspace first."""
    blobs: FileBlobs
    done: Sequence[ExecutedAttempt]


def _changed(path: Path, changes: list[ExecutedAttempt], world: _World) -> ChangedFile | None:
    intent = changes[0].intent
    try:
        now = snapshot_at(path, containing_root(world.roots, path) or world.roots[0]).data
        before = world.blobs.get(intent.before_blob) if intent and intent.before_blob else None
    except (PathRefused, StorageError) as refused:
        return ChangedFile(str(path), "unreadable", by_others=str(refused))
    if now == before:
        return None
    workspace = world.roots[0]
    shown = str(path.relative_to(workspace) if path.is_relative_to(workspace) else path)
    diff, added, removed = _diff(shown, before, now)
    status: Literal["created", "modified", "removed"] = (
        "created" if before is None else "removed" if now is None else "modified"
    )
    others = find_foreign_change(None if now is None else sha256_hex(now), changes, world.done)
    return ChangedFile(shown, status, diff, added, removed, others)


def _diff(path: str, before: bytes | None, now: bytes | None) -> tuple[str, int, int]:
    if is_binary(before or b"") or is_binary(now or b""):
        return f"Binary file {path} differs\n", 0, 0
    old = None if before is None else decode(before)[0]
    found = diff_texts(path, old, decode(now or b"")[0], digests=(None, ""))
    head = f"--- {'/dev/null' if before is None else path}\n+++ {path}\n"
    gone = f"--- {path}\n+++ /dev/null\n"
    text = found.unified or head
    return (text.replace(head, gone, 1) if now is None else text), found.added, found.removed
