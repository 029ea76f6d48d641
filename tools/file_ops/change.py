"""A change of one file's content: plan it, show it, check it against what was read and approved, write it."""

import hashlib
import stat
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from tools.base import (
    BaseTool,
    DiffResult,
    FileEffect,
    InterruptedCall,
    PathTarget,
    Preview,
    Reconciliation,
    Target,
    ToolContext,
    ToolErrorType,
    ToolKind,
    ToolResult,
    ToolRiskLevel,
)
from tools.diff import diff_texts
from tools.files import Snapshot, read_snapshot, replace_file
from tools.paths import PathRefused, ResolvedPath, quoted_path
from tools.running import run_in_thread
from tools.text import TextForm, decode, to_newline

__all__ = [
    "FileChange",
    "FileChangeTool",
    "apply_change",
    "encode_text",
    "find_conflict",
    "plan_change",
    "reconcile_file",
]

_MAX_BYTES = 1 << 30
_CACHED_BYTES = 8 << 20
"""A larger change is planned again rather than held in memory while the user decides."""


@dataclass(frozen=True)
class FileChange:
    """The content a file has and the content it is to get."""

    before: Snapshot
    after: bytes
    diff: DiffResult
    replacements: int = 0
    """How many places an edit replaces."""
    notes: tuple[str, ...] = ()
    """What the model should know about an edit that did not match exactly."""

    @property
    def path(self) -> str:
        """The real path."""
        return str(self.before.resolved.path)

    @property
    def is_empty(self) -> bool:
        """Whether the file has the new content already."""
        return self.before.sha256 == self.diff.after_sha256


class FileChangeTool(BaseTool, ABC):
    """Base of the tools that change one file: a subclass plans the change and reports it."""

    risk_level = ToolRiskLevel.MEDIUM
    kind = ToolKind.WRITE
    category = "files"
    access: ClassVar[Literal["write", "edit"]] = "write"
    """What policy evaluates: an edit shows the file's text in its result, so it reads as well."""

    @abstractmethod
    def plan(self, args: Mapping[str, Any], context: ToolContext) -> FileChange:
        """The change these arguments ask for. Blocking; no effects.

        Raises:
            PathRefused: the file cannot be changed like this.
        """

    @abstractmethod
    def report(self, change: FileChange, file_path: str) -> ToolResult:
        """The result of the change that was made."""

    def targets(self, args: Mapping[str, Any]) -> list[Target]:
        return [PathTarget(str(args["file_path"]), self.access)]

    async def preview(self, args: Mapping[str, Any], context: ToolContext | None = None) -> Preview | None:
        """The diff, and the file it was computed from."""
        context = self.context_or_default(context)
        await _require_saved(str(args["file_path"]), context)
        change = await run_in_thread(self._planned, args, context)
        return Preview("diff", change.diff.unified or "(no change)\n", change.before.as_observed())

    async def predict_effect(
        self, args: Mapping[str, Any], context: ToolContext | None = None
    ) -> FileEffect | None:
        """The file before, and the digest after."""
        try:
            return await run_in_thread(self._effect, args, self.context_or_default(context))
        except PathRefused:
            return None

    def _effect(self, args: Mapping[str, Any], context: ToolContext) -> FileEffect:
        change = self._planned(args, context)
        status = change.before.status
        mode = None if status is None else stat.S_IMODE(status.st_mode)
        missing = [folder for folder in change.before.resolved.path.parents if not folder.exists()]
        new_folder = str(missing[-1]) if missing else None
        return FileEffect(change.path, change.before.data, change.diff.after_sha256, mode, new_folder)

    async def reconcile(self, call: InterruptedCall) -> Reconciliation:
        """Compare the file with the predicted digests."""
        return await run_in_thread(reconcile_file, call)

    async def change_file(
        self, args: Mapping[str, Any], context: ToolContext, *, needs_earlier_read: bool
    ) -> ToolResult:
        """Make the change, unless the file differs from what this thread read and the user approved."""
        try:
            await _require_saved(str(args["file_path"]), context)
            change = await run_in_thread(self._planned, args, context)
            known = await context.file_states.get(context.thread_id, change.path)
            if known is None and not needs_earlier_read:
                known = (context.observed or {}).get("sha256") or change.before.sha256
            if conflict := find_conflict(change.before, known, context.observed):
                return conflict.as_result()
            await run_in_thread(apply_change, change, context)
        except PathRefused as refused:
            return refused.as_result()
        await context.file_states.set(context.thread_id, change.path, change.diff.after_sha256)
        return self.report(change, str(args["file_path"]))

    def _planned(self, args: Mapping[str, Any], context: ToolContext) -> FileChange:
        """The change, planned once per call, and again when the file is no longer the one it was planned from."""
        known = context.cache.get("change")
        if isinstance(known, FileChange) and known.before.is_current(context.resolve(str(args["file_path"]))):
            return known
        change = self.plan(args, context)
        if len(change.before.data or b"") + len(change.after) <= _CACHED_BYTES:
            context.cache["change"] = change
        return change

    @staticmethod
    def result(output: str, display: str, change: FileChange) -> ToolResult:
        """A result that carries the diff, and says when hard links to the file were broken."""
        status = change.before.status
        if status is not None and status.st_nlink > 1 and not change.is_empty:
            output += f" The file had {status.st_nlink} hard links: the other names keep the old content."
        return ToolResult(output, display=display, metadata={"diff": asdict(change.diff)})


async def _require_saved(file_path: str, context: ToolContext) -> None:
    """Refuse to change a file on the disk while the user's editor holds other text of it.

    Raises:
        PathRefused: it does, or it does not answer.
    """
    if context.buffers is None:
        return
    before = await run_in_thread(read_snapshot, context.resolve(file_path), context.limits.file_bytes)
    try:
        is_saved = await context.buffers.unsaved(before.resolved.path, before.data) is None
    except TimeoutError:
        raise PathRefused(
            ToolErrorType.TIMEOUT,
            f"The user's editor did not say whether {quoted_path(file_path)} has unsaved changes. Nothing was "
            "written; try again.",
        ) from None
    if not is_saved:
        raise PathRefused(
            ToolErrorType.VALIDATION,
            f"{quoted_path(file_path)} has unsaved changes in the user's editor. Nothing was written: ask the user "
            "to save or discard them first. read_file shows the unsaved text.",
        )


def plan_change(before: Snapshot, old: str | None, after: bytes, new: str | None = None) -> FileChange:
    """The change from a snapshot, whose text is `old`, to the bytes `after`; `new` is their text, if known."""
    new = decode(after)[0] if new is None else new
    after_sha256 = before.digest_of_next(after)
    diff = diff_texts(str(before.resolved.path), old, new, digests=(before.sha256, after_sha256))
    return FileChange(before, after, diff)


def encode_text(file_path: str, text: str, form: TextForm, newline: str | None = None) -> bytes:
    """The bytes of a text in the form of its file, its line ends turned into `newline` where that is given.

    Raises:
        PathRefused: the encoding lacks a character.
    """
    try:
        return form.encode(to_newline(text, newline))
    except UnicodeEncodeError as error:
        missing = str(error.object)[error.start : error.start + 1]
        raise PathRefused(
            ToolErrorType.VALIDATION,
            f"{quoted_path(file_path)} is encoded in {form.encoding}, which has no {missing!r}; "
            "write the text without that character.",
        ) from error


def apply_change(change: FileChange, context: ToolContext) -> None:
    """Write the new content, unless the file has it already.

    Raises:
        PathRefused: see `tools.files.replace_file`.
    """
    if change.is_empty:
        return
    # Every attempt of a call uses the same name, so that a retry removes what a killed attempt left behind.
    owner = hashlib.sha256(
        f"{context.thread_id}\0{context.call_id}\0{change.path}".encode("utf-8", "surrogateescape")
    ).hexdigest()[:16]
    replace_file(change.before, change.after, temp_name=f".graph-agent-{owner}.tmp")


def find_conflict(now: Snapshot, known: str | None, observed: Mapping[str, Any] | None) -> PathRefused | None:
    """Why the file must not be overwritten, or None.

    Args:
        now: the file as it is.
        known: digest of what the thread last read or wrote there.
        observed: what the preview was computed from; a later write of this same thread does not invalidate it.
    """
    given, message = now.resolved.given, ""
    if observed is not None and observed["path"] != str(now.resolved.path):
        message = (
            f"{quoted_path(given)} now leads to {now.resolved.path}, but the approval was for {observed['path']}."
        )
    elif now.sha256 is None:
        if observed is not None and observed["sha256"] is not None:
            message = f"{quoted_path(given)} was deleted after the change was approved."
    elif known is None:
        message = (
            f"{quoted_path(given)} exists and was not read in this conversation; read it with read_file first."
        )
    elif known != now.sha256:
        message = f"{quoted_path(given)} was changed by someone else since it was last read; read it again first."
    return PathRefused(ToolErrorType.VALIDATION, f"{message} Nothing was written.") if message else None


def reconcile_file(call: InterruptedCall) -> Reconciliation:
    """Compare a file with the digests that were predicted before the call touched it."""
    if call.path is None or call.after_sha256 is None:
        return Reconciliation("unknown", "The intended content of the file was not recorded.")
    path = Path(call.path)
    try:
        now = read_snapshot(ResolvedPath(call.path, path, inside=True, exposes_process=False), _MAX_BYTES).sha256
    except PathRefused as refused:
        return Reconciliation("unknown", f"The file cannot be read: {refused}")
    if now == call.after_sha256:
        return Reconciliation("already_applied", f"{call.path} has exactly the content this call was to write.")
    if now == call.before_sha256:
        state = "does not exist" if now is None else "has exactly the content"
        return Reconciliation("not_applied", f"{call.path} {state}, as before the call.")
    state = "no longer exists" if now is None else "has neither the old nor the new content"
    return Reconciliation("something_else", f"{call.path} {state}: something else changed it too.")
