"""Writing a whole file: atomically, and only over content that this thread has read."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from tools.base import ToolContext, ToolErrorType, ToolResult
from tools.file_ops.change import FileChange, FileChangeTool, encode_text, plan_change
from tools.files import read_snapshot
from tools.paths import PathRefused, quoted_path
from tools.text import TextForm, decode, is_binary

__all__ = ["WriteFileArgs", "WriteFileTool"]


class WriteFileArgs(BaseModel):
    file_path: str = Field(description="file to write, relative to the workspace or absolute")
    content: str = Field(description="the whole new content")


class WriteFileTool(FileChangeTool):
    name = "write_file"
    description = (
        "Write a whole file; missing folders are created. Read an existing file before you overwrite it; it keeps "
        "its encoding and line endings. A new file gets exactly the given text."
    )
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
            old = f"(binary content, {len(before.data)} bytes)\n"
        elif before.data is not None:
            old, form = decode(before.data)
        text = content.removeprefix("\ufeff") if form.mark else content
        return plan_change(before, old, encode_text(file_path, text, form, form.newline))

    async def execute(self, *, file_path: str, content: str, context: ToolContext | None = None) -> ToolResult:
        args = {"file_path": file_path, "content": content}
        return await self.change_file(args, self.context_or_default(context), needs_earlier_read=True)

    def report(self, change: FileChange, file_path: str) -> ToolResult:
        """What was written."""
        if change.is_empty:
            return self.result(f"{file_path} already has this content.", f"{file_path} unchanged", change)
        diff, verb = change.diff, "Created" if change.before.data is None else "Wrote"
        output = f"{verb} {file_path} ({len(change.after)} bytes, +{diff.added} -{diff.removed} lines)."
        return self.result(output, f"{file_path} +{diff.added} -{diff.removed}", change)
