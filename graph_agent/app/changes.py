"""What a thread changed in its workspace: each file before its first change, against the file now. Reads only."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from graph_agent.config.paths import blob_dir
from graph_agent.errors import StorageError
from graph_agent.inspect import Reader
from graph_agent.ports import Done
from graph_agent.session.changes import by_path, objection
from graph_agent.store.blobs import FileBlobs
from tools.diff import diff_of
from tools.files import digest
from tools.paths import PathRefused, holder
from tools.restoring import look_again
from tools.text import decode, is_binary

__all__ = ["ChangedFile", "Changes", "changes_of"]


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
class Changes:
    """All files of a thread that are not what they were."""

    thread_id: str
    workspace: str
    files: tuple[ChangedFile, ...]


def changes_of(database: Path, text: str, here: str | None) -> Changes:
    """Compare. Commands are left out: what they changed is not recorded.

    Raises:
        UnknownId: nothing fits the text, or several ids do.
        NothingYet: there is no database.
    """
    with Reader.open(database) as reader:
        thread = reader.thread(reader.resolve(text, here).thread_id)
        done = reader.done(thread.thread_id)
        roots = tuple(Path(root).resolve() for root in reader.roots(thread.thread_id))
    workspace = Path(thread.workspace).resolve()
    blobs = FileBlobs(blob_dir(database))
    found = [_changed(Path(path), changes, (workspace, *roots), blobs) for path, changes in by_path(done).items()]
    return Changes(thread.thread_id, thread.workspace, tuple(file for file in found if file is not None))


def _changed(path: Path, changes: list[Done], roots: tuple[Path, ...], blobs: FileBlobs) -> ChangedFile | None:
    intent = changes[0].intent
    try:
        now = look_again(path, holder(roots, path) or roots[0]).data
        before = blobs.get(intent.before_blob) if intent and intent.before_blob else None
    except (PathRefused, StorageError) as refused:
        return ChangedFile(str(path), "unreadable", by_others=str(refused))
    if now == before:
        return None
    shown = str(path.relative_to(roots[0]) if path.is_relative_to(roots[0]) else path)
    diff, added, removed = _diff(shown, before, now)
    status: Literal["created", "modified", "removed"] = (
        "created" if before is None else "removed" if now is None else "modified"
    )
    others = objection(None if now is None else digest(now), changes)
    return ChangedFile(shown, status, diff, added, removed, others)


def _diff(path: str, before: bytes | None, now: bytes | None) -> tuple[str, int, int]:
    if is_binary(before or b"") or is_binary(now or b""):
        return f"Binary file {path} differs\n", 0, 0
    old = None if before is None else decode(before)[0]
    found = diff_of(path, old, decode(now or b"")[0], digests=(None, ""))
    head = f"--- {'/dev/null' if before is None else path}\n+++ {path}\n"
    gone = f"--- {path}\n+++ /dev/null\n"
    text = found.unified or head
    return (text.replace(head, gone, 1) if now is None else text), found.added, found.removed
