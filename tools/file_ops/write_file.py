"""Writing a whole file: atomically, and only over content that this thread has read."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from tools.base import (
    ToolContext,
    ToolDescription,
    ToolErrorType,
    ToolExample,
    ToolResult,
)
from tools.file_ops.change import FileChange, FileChangeTool, encode_text, plan_change
from tools.file_ops.read_file import range_of_lines
from tools.files import Snapshot, read_snapshot
from tools.paths import PathRefused, quoted_path
from tools.text import TextForm, decode, format_count, is_binary

__all__ = ["WriteFileArgs", "WriteFileTool"]


class WriteFileArgs(BaseModel):
    file_path: str = Field(description="file to write, relative to the workspace or absolute")
    content: str = Field(description="the whole new content")


class WriteFileTool(FileChangeTool):
    name = "write_file"
    description = ToolDescription(
        short="Write a whole file; missing folders are created.",
        long="An existing file keeps its encoding and line endings; a new one gets exactly the given text.",
        usage_notes=("For a small change use edit_file.",),
        examples=(ToolExample({"file_path": "notes/todo.md", "content": "# To do\n"}),),
        important=("Read an existing file before you overwrite it.",),
    )
    tags = ("files", "write")
    args_schema = WriteFileArgs
    argument_aliases: ClassVar[Mapping[str, str]] = {"path": "file_path"}

    def plan(self, args: Mapping[str, Any], context: ToolContext) -> FileChange:
        """The change from the file as it is to the given content."""
        file_path, content = str(args["file_path"]), str(args["content"])
        if file_path.endswith("/"):
            raise PathRefused(
                ToolErrorType.VALIDATION, f"{quoted_path(file_path)} names a folder; name the file to write."
            )
        before = read_snapshot(context.resolve(file_path), context.limits.file_bytes)
        old, form = None, TextForm()
        if before.data is not None and is_binary(before.data):
            old = f"(binary content, {format_count(len(before.data), 'byte')})\n"
        elif before.data is not None:
            old, form = decode(before.data)
        text = content.removeprefix("\ufeff") if form.mark else content
        return plan_change(before, old, encode_text(file_path, text, form, form.newline))

    async def execute(self, *, file_path: str, content: str, context: ToolContext | None = None) -> ToolResult:
        args = {"file_path": file_path, "content": content}
        context = self.context_or_default(context)
        result = await self.change_file(args, context, needs_earlier_read=True)
        change = context.cache.get("change")
        if result.error is not None or not isinstance(change, FileChange):
            return result
        unread = _unread_lines(change.before, context.shown)
        note = f" {unread} of its earlier content were never read in this conversation." if unread else ""
        return replace(result, output=result.output + note)

    def report(self, change: FileChange, file_path: str) -> ToolResult:
        """What was written."""
        if change.is_empty:
            return self.result(f"{file_path} already has this content.", f"{file_path} unchanged", change)
        diff, verb = change.diff, "Created" if change.before.data is None else "Wrote"
        size = format_count(len(change.after), "byte")
        output = f"{verb} {file_path} ({size}, +{diff.added} -{diff.removed} lines)."
        return self.result(output, f"{file_path} +{diff.added} -{diff.removed}", change)


def _unread_lines(before: Snapshot, shown: Sequence[Mapping[str, Any]]) -> str:
    """The lines of the old content that no result has shown, where others were shown; else empty."""
    ranges = [
        (int(one["offset"]), int(one["until"]))
        for one in shown
        if one.get("sha256") == before.sha256 and isinstance(one.get("until"), int)
    ]
    if not ranges or before.data is None or before.resolved.path.suffix == ".ipynb":
        return ""
    _, total = range_of_lines(decode(before.data)[0], 1, 0)
    gaps, last = [], 0
    for first, until in sorted([*ranges, (total + 1, total + 1)]):
        if first > last + 1:
            gaps.append(str(last + 1) if first == last + 2 else f"{last + 1} to {first - 1}")
        last = max(last, until)
    return f"Lines {', '.join(gaps)}" if gaps else ""
