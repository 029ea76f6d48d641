"""A planned change of one file's content, and carrying it out. Knows neither why it is wanted nor who consented.

Whether a file may still be overwritten: it must be what the thread knows, and what was consented to.

What became of a file change that was broken off: read from the content, never guessed.
"""

import hashlib
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.context import ToolContext
from tools.diff import diff_texts
from tools.files import Snapshot, read_snapshot, replace_file
from tools.paths import PathRefused, ResolvedPath
from tools.result import DiffResult, FileEffect, InterruptedCall, Reconciliation, ToolErrorType
from tools.text import TextForm, decode, to_newline

__all__ = [
    "FileChange",
    "apply_change",
    "encode_text",
    "file_effect",
    "find_conflict",
    "plan_change",
    "reconcile_file",
]


@dataclass(frozen=True)
class FileChange:
    """What is to become of a file."""

    before: Snapshot
    after: bytes
    diff: DiffResult

    @property
    def path(self) -> str:
        """The real path."""
        return str(self.before.resolved.path)

    @property
    def is_empty(self) -> bool:
        """Whether the content is there already."""
        return self.before.sha256 == self.diff.after_sha256

    @property
    def parted_links(self) -> str:
        """A remark when other names of the file will keep the old content; else nothing."""
        status = self.before.status
        if status is None or status.st_nlink < 2:
            return ""
        return f" Its {status.st_nlink} hard links are parted: the other names keep the old content."

    @property
    def metadata(self) -> dict[str, Any]:
        """The diff for rendering."""
        return {"diff": self.diff.as_json()}


def plan_change(before: Snapshot, old: str | None, after: bytes, new: str | None = None) -> FileChange:
    """The change from what was looked at, whose text is `old`, to these bytes; `new` is their text, if known."""
    new = decode(after)[0] if new is None else new
    after_sha256 = before.digest_of_next(after)
    return FileChange(
        before, after, diff_texts(str(before.resolved.path), old, new, digests=(before.sha256, after_sha256))
    )


def encode_text(file_path: str, text: str, form: TextForm, newline: str | None = None) -> bytes:
    """The bytes of a text in the form of its file, its line ends turned into `newline` where that is given.

    Raises:
        PathRefused: the encoding lacks a character.
    """
    try:
        return form.encode(to_newline(text, newline))
    except UnicodeEncodeError as error:
        lacking = str(error.object)[error.start : error.start + 1]
        raise PathRefused(
            ToolErrorType.VALIDATION,
            f"{file_path!r} is kept in {form.encoding}, which has no {lacking!r}; "
            "write the text without that character.",
        ) from error


def file_effect(change: FileChange) -> FileEffect:
    """What the change does to the world, as whoever wants to take it back must know."""
    status = change.before.status
    mode = None if status is None else stat.S_IMODE(status.st_mode)
    return FileEffect(change.path, change.before.data, change.diff.after_sha256, mode, _new_folder(change))


def _new_folder(change: FileChange) -> str | None:
    missing = [folder for folder in change.before.resolved.path.parents if not folder.exists()]
    return str(missing[-1]) if missing else None


def apply_change(change: FileChange, context: ToolContext) -> None:
    """Write it, unless the content is there already.

    Raises:
        PathRefused: see `tools.files.replace`.
    """
    if change.is_empty:
        return
    # The name is the same for every attempt of a call, so that a retry clears what a killed attempt left behind.
    owner = hashlib.sha256(f"{context.thread_id}\0{context.call_id}\0{change.path}".encode()).hexdigest()[:16]
    temp_name = f".graph-agent-{owner}.tmp"
    replace_file(change.before, change.after, temp_name=temp_name)


def find_conflict(now: Snapshot, known: str | None, seen: Mapping[str, Any] | None) -> PathRefused | None:
    """Why the file must not be overwritten, or None.

    Args:
        now: the file as it is.
        known: digest the thread last read or wrote there.
        seen: what the preview was made from; a later write of this very thread does not spoil it.
    """
    given = now.resolved.given
    if seen is not None and seen["path"] != str(now.resolved.path):
        return _refused(f"{given!r} leads to {now.resolved.path} now, but {seen['path']} was shown for consent.")
    if now.sha256 is None:
        was_shown = seen is not None and seen["sha256"] is not None
        return _refused(f"{given!r} was deleted after the change was shown.") if was_shown else None
    if known is None:
        return _refused(f"{given!r} exists and was not read in this conversation; read it with read_file first.")
    if known != now.sha256:
        return _refused(f"{given!r} was changed by someone else since it was last read; read it again first.")
    return None


def _refused(message: str) -> PathRefused:
    return PathRefused(ToolErrorType.VALIDATION, f"{message} Nothing was written.")


_MAX_BYTES = 1 << 30


def reconcile_file(call: InterruptedCall) -> Reconciliation:
    """Compares the file with the digests foreseen before it was touched."""
    if call.path is None or call.after_sha256 is None:
        return Reconciliation("unknown", "It was not recorded what the file was to become.")
    path = Path(call.path)
    try:
        now = read_snapshot(ResolvedPath(call.path, path, inside=True, exposes_process=False), _MAX_BYTES).sha256
    except PathRefused as refused:
        return Reconciliation("unknown", f"The file cannot be looked at: {refused}")
    if now == call.after_sha256:
        return Reconciliation("already_applied", f"{call.path} has exactly the content this call was to write.")
    if now == call.before_sha256:
        was = (
            "does not exist, as before the call" if now is None else "has exactly the content from before the call"
        )
        return Reconciliation("not_applied", f"{call.path} {was}.")
    gone = "does not exist any more" if now is None else "has neither the old nor the new content"
    return Reconciliation("something_else", f"{call.path} {gone}: something else changed it too.")
