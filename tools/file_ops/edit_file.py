"""Replacing pieces of a file: all of the wished replacements or none, and every other byte stays."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

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
from tools.file_ops.replace import Mode, ReplaceError, Replacement, replace_text
from tools.file_ops.similar_paths import missing_path
from tools.files import read_snapshot
from tools.paths import PathRefused
from tools.running import run_in_thread
from tools.text import decode, is_binary

__all__ = ["EditFileArgs", "EditFileTool", "OneEdit"]


class OneEdit(BaseModel):
    """One replacement of several."""

    old_string: str = Field(description="text to replace; it must fit one place only, unless replace_all")
    new_string: str = Field(description="text to put there, taken literally")
    replace_all: bool = Field(default=False, description="replace every occurrence")


class EditFileArgs(BaseModel):
    """The file, and one replacement or several."""

    file_path: str = Field(description="file to change, relative to the workspace or absolute")
    old_string: str | None = Field(
        default=None, description="text to replace; it must fit one place only, unless replace_all"
    )
    new_string: str | None = Field(default=None, description="text to put there, taken literally")
    replace_all: bool = Field(default=False, description="replace every occurrence")
    mode: Literal["exact", "flexible", "regex"] = Field(
        default="flexible",
        description=(
            "flexible: exact first, else overlooking white space, quotes and line ends; exact: nothing is "
            "overlooked; regex: old_string is a regular expression"
        ),
    )
    edits: list[OneEdit] | None = Field(
        default=None, description="several replacements, made in order, all or none; instead of old_string"
    )


@dataclass(frozen=True)
class _Plan:
    change: FileChange
    count: int
    remarks: tuple[str, ...]


class EditFileTool(BaseTool):
    """See the module."""

    name = "edit_file"
    description = (
        "Replace text in a file. old_string must fit exactly one place, so give enough of its surroundings, or set "
        "replace_all. Do not include the line numbers that read_file shows. Several edits are made all or none."
    )
    risk_level = ToolRiskLevel.MEDIUM
    kind = ToolKind.WRITE
    category = "files"
    args_schema = EditFileArgs
    argument_aliases: ClassVar[Mapping[str, str]] = {
        "path": "file_path",
        "old": "old_string",
        "new": "new_string",
    }

    def validate(self, args: Mapping[str, Any]) -> str | None:
        """Whether it is clear what to replace."""
        single = args.get("old_string"), args.get("new_string")
        if args.get("edits"):
            return None if single == (None, None) else "Give either edits or old_string and new_string, not both."
        if None in single:
            return "Give old_string and new_string, or edits with several of them."
        return None if single[0] else "old_string is empty; give the text to replace, or use write_file."

    def targets(self, args: Mapping[str, Any]) -> list[Target]:
        """The file."""
        return [PathTarget(str(args["file_path"]), "write")]

    async def preview(self, args: Mapping[str, Any], context: ToolContext | None = None) -> Preview | None:
        """The diff, and what it was made from."""
        plan = await run_in_thread(_plan, args, self.context_or_default(context))
        return Preview("diff", plan.change.diff.unified, plan.change.before.as_observed())

    async def predict_effect(
        self, args: Mapping[str, Any], context: ToolContext | None = None
    ) -> FileEffect | None:
        """The file before, and the digest after."""
        try:
            change = (await run_in_thread(_plan, args, self.context_or_default(context))).change
        except PathRefused:
            return None
        return await run_in_thread(file_effect, change)

    async def reconcile(self, call: InterruptedCall) -> Reconciliation:
        """Compares the file with what was foreseen."""
        return await run_in_thread(reconcile_file, call)

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
        """Replace, unless the file is not what the thread and the consent have seen."""
        surroundings = self.context_or_default(context)
        single = {"old_string": old_string, "new_string": new_string, "replace_all": replace_all}
        args = {"file_path": file_path, "mode": mode, "edits": edits, **single}
        try:
            plan = await self._carry_out(args, surroundings)
        except PathRefused as refused:
            return refused.as_result()
        return _told(plan, file_path)

    async def _carry_out(self, args: Mapping[str, Any], context: ToolContext) -> _Plan:
        if wrong := self.validate(args):
            raise PathRefused(ToolErrorType.VALIDATION, wrong)
        plan = await run_in_thread(_plan, args, context)
        change = plan.change
        known = await context.file_states.get(context.thread_id, change.path)
        # A file that was never read may be edited; then what was shown for consent binds.
        shown = context.observed["sha256"] if context.observed else None
        if refused := find_conflict(change.before, known or shown or change.before.sha256, context.observed):
            raise refused
        await run_in_thread(apply_change, change, context)
        await context.file_states.set(context.thread_id, change.path, change.diff.after_sha256)
        return plan


def _plan(args: Mapping[str, Any], context: ToolContext) -> _Plan:
    file_path = args["file_path"]
    before = read_snapshot(context.resolve(file_path), context.limits.file_bytes)
    if before.data is None:
        raise missing_path(before.resolved, context, "create it with write_file, or look with ls")
    if is_binary(before.data):
        raise PathRefused(ToolErrorType.VALIDATION, f"{file_path!r} is a binary file, which is not edited as text.")
    old, form = decode(before.data)
    text, count, remarks = old, 0, []
    wishes = [_beside_mark(wish) if form.mark else wish for wish in _wishes(args)]
    for number, wish in enumerate(wishes, start=1):
        try:
            done = replace_text(text, wish, form.newline)
        except ReplaceError as why:
            which = f"edit {number} of {len(wishes)} in {file_path!r}" if len(wishes) > 1 else f"{file_path!r}"
            raise PathRefused(ToolErrorType.VALIDATION, f"{which}: {why}") from why
        text, count = done.text, count + done.count
        remarks += [done.remark] if done.remark else []
    change = plan_change(before, old, encode_text(file_path, text, form), text)
    return _Plan(change, count, tuple(dict.fromkeys(remarks)))


def _wishes(args: Mapping[str, Any]) -> list[Replacement]:
    mode = args.get("mode", "flexible")
    if not args.get("edits"):
        return [Replacement(args["old_string"], args["new_string"], bool(args.get("replace_all")), mode)]
    edits = [OneEdit.model_validate(edit) for edit in args["edits"]]
    return [Replacement(edit.old_string, edit.new_string, edit.replace_all, mode) for edit in edits]


def _beside_mark(wish: Replacement) -> Replacement:
    """For a file that begins with a byte order mark, which is no part of its text, though models may write it."""
    return replace(wish, old=wish.old.removeprefix("\ufeff"), new=wish.new.removeprefix("\ufeff"))


def _told(plan: _Plan, file_path: str) -> ToolResult:
    change, diff = plan.change, plan.change.diff
    places = "1 place" if plan.count == 1 else f"{plan.count} places"
    output = " ".join([f"Edited {file_path} in {places} (+{diff.added} -{diff.removed} lines).", *plan.remarks])
    display = f"{file_path} +{diff.added} -{diff.removed}"
    return ToolResult(f"{output}{change.parted_links}", display=display, metadata=change.metadata)
