"""Writing a whole file: at once or not at all, and only over what this thread has seen."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from tools.base import (
    BaseTool,
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
from tools.file_ops.change import (
    FileChange,
    apply_change,
    encode_text,
    file_effect,
    find_conflict,
    plan_change,
    reconcile_file,
)
from tools.files import Snapshot, read_snapshot
from tools.paths import PathRefused
from tools.running import run_in_thread
from tools.text import TextForm, decode, is_binary

__all__ = ["WriteFileArgs", "WriteFileTool"]


class WriteFileArgs(BaseModel):
    """The file and all of its new content."""

    file_path: str = Field(description="file to write, relative to the workspace or absolute")
    content: str = Field(description="the whole new content")


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
        surroundings = self.context_or_default(context)
        change = await run_in_thread(_plan, args["file_path"], args["content"], surroundings)
        return Preview("diff", change.diff.unified or "(no change)\n", change.before.as_observed())

    async def predict_effect(
        self, args: Mapping[str, Any], context: ToolContext | None = None
    ) -> FileEffect | None:
        """The file before, and the digest after."""
        surroundings = self.context_or_default(context)
        try:
            change = await run_in_thread(_plan, args["file_path"], args["content"], surroundings)
        except PathRefused:
            return None
        return await run_in_thread(file_effect, change)

    async def reconcile(self, call: InterruptedCall) -> Reconciliation:
        """Compares the file with what was foreseen."""
        return await run_in_thread(reconcile_file, call)

    async def execute(self, *, file_path: str, content: str, context: ToolContext | None = None) -> ToolResult:
        """Write, unless the file is not what the thread and the consent have seen."""
        surroundings = self.context_or_default(context)
        try:
            change = await run_in_thread(_plan, file_path, content, surroundings)
            known = await surroundings.file_states.get(surroundings.thread_id, change.path)
            if refused := find_conflict(change.before, known, surroundings.observed):
                return refused.as_result()
            await run_in_thread(apply_change, change, surroundings)
        except PathRefused as refused:
            return refused.as_result()
        await surroundings.file_states.set(surroundings.thread_id, change.path, change.diff.after_sha256)
        return _told(change, file_path)


def _plan(file_path: str, content: str, context: ToolContext) -> FileChange:
    if file_path.endswith("/"):
        raise PathRefused(ToolErrorType.VALIDATION, f"{file_path!r} names a folder; name the file to write.")
    before = read_snapshot(context.resolve(file_path), context.limits.file_bytes)
    old, form = _form_of(before)
    text = content.removeprefix("\ufeff") if form.mark else content
    return plan_change(before, old, encode_text(file_path, text, form, form.newline))


def _form_of(before: Snapshot) -> tuple[str | None, TextForm]:
    if before.data is None:
        return None, TextForm()
    if is_binary(before.data):
        return f"(binary content, {len(before.data)} bytes)\n", TextForm()
    return decode(before.data)


def _told(change: FileChange, file_path: str) -> ToolResult:
    if change.is_empty:
        return ToolResult(
            f"{file_path} has exactly this content already.",
            display=f"{file_path} unchanged",
            metadata=change.metadata,
        )
    diff = change.diff
    verb = "Created" if change.before.data is None else "Wrote"
    output = f"{verb} {file_path} ({len(change.after)} bytes, +{diff.added} -{diff.removed} lines)."
    return ToolResult(
        f"{output}{change.parted_links}",
        display=f"{file_path} +{diff.added} -{diff.removed}",
        metadata=change.metadata,
    )
