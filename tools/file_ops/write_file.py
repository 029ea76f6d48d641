"""Writing a whole file: at once or not at all, and only over what this thread has seen."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, Field

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
from tools.blocking import in_thread
from tools.diff import diff_of
from tools.file_ops.consent import objection
from tools.file_ops.reconciling import reconcile_file
from tools.files import Snapshot, digest, look, replace
from tools.paths import PathRefused, resolve
from tools.text import TextForm, decode, is_binary, to_newline

__all__ = ["WriteFileArgs", "WriteFileTool"]


class WriteFileArgs(BaseModel):
    """The file and all of its new content."""

    file_path: str = Field(description="file to write, relative to the workspace or absolute")
    content: str = Field(description="the whole new content")


@dataclass(frozen=True)
class _Change:
    before: Snapshot
    after: bytes
    diff: DiffResult


class WriteFileTool(BaseTool):
    """See the module."""

    name = "write_file"
    description = (
        "Write a whole file; folders are created as needed. An existing file must have been read first and not "
        "have changed since; it keeps its encoding and line endings. A new one gets exactly the given text."
    )
    risk_level = ToolRiskLevel.MEDIUM
    kind = ToolKind.WRITE
    category = "files"
    args_schema = WriteFileArgs
    argument_aliases: ClassVar[Mapping[str, str]] = {"path": "file_path"}

    def targets(self, args: Mapping[str, Any]) -> list[Target]:
        """The file."""
        return [PathTarget(str(args["file_path"]), "write")]

    async def preview(self, args: Mapping[str, Any], context: ToolContext | None = None) -> Preview | None:
        """The diff, and what it was made from."""
        surroundings = self.context_or_own(context)
        change = await in_thread(_plan, args["file_path"], args["content"], surroundings)
        return Preview("diff", change.diff.unified or "(no change)\n", change.before.as_seen())

    async def foresee(self, args: Mapping[str, Any], context: ToolContext | None = None) -> FileEffect | None:
        """The file before, and the digest after."""
        surroundings = self.context_or_own(context)
        try:
            change = await in_thread(_plan, args["file_path"], args["content"], surroundings)
        except PathRefused:
            return None
        return FileEffect(change.diff.path, change.before.data, change.diff.after_sha256)

    async def reconcile(self, call: InterruptedCall) -> Reconciliation:
        """Compares the file with what was foreseen."""
        return await in_thread(reconcile_file, call)

    async def execute(self, *, file_path: str, content: str, context: ToolContext | None = None) -> ToolResult:
        """Write, unless the file is not what the thread and the consent have seen."""
        surroundings = self.context_or_own(context)
        try:
            change = await in_thread(_plan, file_path, content, surroundings)
            path = str(change.before.resolved.path)
            known = await surroundings.file_states.get(surroundings.thread_id, path)
            if refused := objection(change.before, known, surroundings.seen):
                return refused.as_result()
            await in_thread(_apply, change, surroundings)
        except PathRefused as refused:
            return refused.as_result()
        await surroundings.file_states.set(surroundings.thread_id, path, change.diff.after_sha256)
        return _told(change, file_path)


def _plan(file_path: str, content: str, context: ToolContext) -> _Change:
    before = look(resolve(file_path, workspace=context.workspace), context.limits.file_bytes)
    path = str(before.resolved.path)
    old, form = _form_of(before)
    after = _encoded(file_path, content, form)
    new, _ = decode(after)
    return _Change(before, after, diff_of(path, old, new, digests=(before.sha256, digest(after))))


def _form_of(before: Snapshot) -> tuple[str | None, TextForm]:
    if before.data is None:
        return None, TextForm()
    if is_binary(before.data):
        return f"(binary content, {len(before.data)} bytes)\n", TextForm()
    return decode(before.data)


def _encoded(file_path: str, content: str, form: TextForm) -> bytes:
    text = content.removeprefix("\ufeff") if form.mark else content
    try:
        return form.encode(to_newline(text, form.newline))
    except UnicodeEncodeError as error:
        raise PathRefused(
            ToolErrorType.VALIDATION,
            f"{file_path!r} is kept in {form.encoding}, which has no {text[error.start : error.start + 1]!r}; "
            "write the text without that character.",
        ) from error


def _apply(change: _Change, context: ToolContext) -> None:
    if change.before.data == change.after:
        return
    # The name is the same for every attempt of a call, so that a retry clears what a killed attempt left behind.
    owner = hashlib.sha256(f"{context.thread_id}\0{context.call_id}\0{change.diff.path}".encode()).hexdigest()[:16]
    temp_name = f".graph-agent-{owner}.tmp"
    replace(change.before, change.after, temp_name=temp_name, max_bytes=context.limits.file_bytes)


def _told(change: _Change, file_path: str) -> ToolResult:
    diff, before = change.diff, change.before
    if before.data == change.after:
        return ToolResult(
            f"{file_path} has exactly this content already.",
            display=f"{file_path} unchanged",
            metadata=_metadata(change),
        )
    verb = "Created" if before.data is None else "Wrote"
    output = f"{verb} {file_path} ({len(change.after)} bytes, +{diff.added} -{diff.removed} lines)."
    if before.status is not None and before.status.st_nlink > 1:
        output += f" Its {before.status.st_nlink} hard links are parted: the other names keep the old content."
    return ToolResult(output, display=f"{file_path} +{diff.added} -{diff.removed}", metadata=_metadata(change))


def _metadata(change: _Change) -> dict[str, Any]:
    return {"diff": change.diff.as_json()}
