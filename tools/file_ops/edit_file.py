"""Replacing parts of a file: either all requested replacements or none, and every other byte stays."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, Field

from tools.base import (
    ToolContext,
    ToolDescription,
    ToolErrorType,
    ToolExample,
    ToolResult,
)
from tools.file_ops.change import FileChange, FileChangeTool, encode_text, plan_change
from tools.file_ops.replace import Mode, ReplaceError, Replacement, replace_text
from tools.file_ops.similar_paths import missing_path
from tools.files import read_snapshot
from tools.paths import PathRefused, quoted_path
from tools.text import decode, format_count, is_binary

__all__ = ["EditFileArgs", "EditFileTool", "OneEdit"]

_OLD_STRING = "text to replace; it must match exactly one place, unless replace_all is set"
_NEW_STRING = "text to put there, taken literally"
_REPLACE_ALL = "replace every occurrence"


class OneEdit(BaseModel):
    """One replacement of several."""

    old_string: str = Field(description=_OLD_STRING)
    new_string: str = Field(description=_NEW_STRING)
    replace_all: bool = Field(default=False, description=_REPLACE_ALL)


class EditFileArgs(BaseModel):
    file_path: str = Field(description="file to change, relative to the workspace or absolute")
    old_string: str | None = Field(default=None, description=_OLD_STRING)
    new_string: str | None = Field(default=None, description=_NEW_STRING)
    replace_all: bool = Field(default=False, description=_REPLACE_ALL)
    mode: Literal["exact", "flexible", "regex"] = Field(
        default="flexible",
        description=(
            "flexible: exact first, else ignoring white space, quotes and line endings; exact: nothing is "
            "ignored; regex: old_string is a regular expression"
        ),
    )
    edits: list[OneEdit] | None = Field(
        default=None, description="several replacements, applied in order, all or none; instead of old_string"
    )


class EditFileTool(FileChangeTool):
    name = "edit_file"
    description = ToolDescription(
        short="Replace text in a file.",
        long="old_string must match exactly one place, or replace_all is set.",
        usage_notes=(
            "Include enough surrounding text to make the place unique.",
            "Several edits are applied all or none.",
        ),
        examples=(
            ToolExample({"file_path": "src/app.py", "old_string": "retries = 3", "new_string": "retries = 5"}),
        ),
        important=("Leave out the line numbers that read_file shows.",),
    )
    tags = ("files", "write")
    args_schema = EditFileArgs
    access = "edit"
    argument_aliases: ClassVar[Mapping[str, str]] = {
        "path": "file_path",
        "old": "old_string",
        "new": "new_string",
    }

    def validate(self, args: Mapping[str, Any]) -> str | None:
        """Require old_string and new_string, or edits."""
        single = args.get("old_string"), args.get("new_string")
        if args.get("edits"):
            return None if single == (None, None) else "Give either edits or old_string and new_string, not both."
        if None in single:
            return "Give old_string and new_string, or edits with several of them."
        return None if single[0] else "old_string is empty; give the text to replace, or use write_file."

    def plan(self, args: Mapping[str, Any], context: ToolContext) -> FileChange:
        """The change that all replacements make together."""
        if problem := self.validate(args):
            raise PathRefused(ToolErrorType.VALIDATION, problem)
        file_path = str(args["file_path"])
        before = read_snapshot(context.resolve(file_path), context.limits.file_bytes)
        if before.data is None:
            raise missing_path(before.resolved, context, "create it with write_file, or list the folder with ls")
        if is_binary(before.data):
            raise PathRefused(
                ToolErrorType.VALIDATION, f"{quoted_path(file_path)} is a binary file; only text can be edited."
            )
        old, form = decode(before.data)
        text, count = old, 0
        notes: dict[str, None] = {}
        edits = [OneEdit.model_validate(edit) for edit in args.get("edits") or [args]]
        replacements = [
            Replacement(edit.old_string, edit.new_string, edit.replace_all, args.get("mode", "flexible"))
            for edit in edits
        ]
        for number, wanted in enumerate(replacements, start=1):
            if form.mark:
                # The byte order mark is no part of the text, though models may write it.
                wanted = replace(  # noqa: PLW2901 - the same replacement without the mark
                    wanted, old=wanted.old.removeprefix("\ufeff"), new=wanted.new.removeprefix("\ufeff")
                )
            try:
                done = replace_text(text, wanted, form.newline)
            except ReplaceError as why:
                which = f"edit {number} of {len(replacements)} in " if len(replacements) > 1 else ""
                raise PathRefused(ToolErrorType.VALIDATION, f"{which}{quoted_path(file_path)}: {why}") from why
            text, count = done.text, count + done.count
            if done.note:
                notes[done.note] = None
        change = plan_change(before, old, encode_text(file_path, text, form), text)
        return replace(change, replacements=count, notes=tuple(notes))

    async def execute(
        self,
        *,
        file_path: str,
        old_string: str | None = None,
        new_string: str | None = None,
        replace_all: bool = False,
        mode: Mode = "flexible",
        edits: list[Any] | None = None,
        context: ToolContext | None = None,
    ) -> ToolResult:
        single = {"old_string": old_string, "new_string": new_string, "replace_all": replace_all}
        args = {"file_path": file_path, "mode": mode, "edits": edits, **single}
        return await self.change_file(args, self.context_or_default(context), needs_earlier_read=False)

    def report(self, change: FileChange, file_path: str) -> ToolResult:
        """What was replaced."""
        diff, places = change.diff, format_count(change.replacements, "place")
        output = f"Edited {file_path} in {places} (+{diff.added} -{diff.removed} lines)."
        return self.result(" ".join([output, *change.notes]), f"{file_path} +{diff.added} -{diff.removed}", change)
