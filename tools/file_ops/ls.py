"""Listing a folder: names, types and sizes, to a depth and a number of entries."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from tools.base import (
    BaseTool,
    PathTarget,
    Target,
    ToolContext,
    ToolDescription,
    ToolErrorType,
    ToolExample,
    ToolKind,
    ToolResult,
    ToolRiskLevel,
    failure,
)
from tools.file_ops.similar_paths import missing_path
from tools.ignore_files import IgnoreRules, generated_folders, names_generated
from tools.paths import PathRefused, open_directory, quoted_path, shown_given, shown_path
from tools.running import run_in_thread
from tools.text import format_count
from tools.walk import Walk, rules_for

__all__ = ["LsArgs", "LsTool"]

_MAX_ENTRIES = 1_000


class LsArgs(BaseModel):
    path: str = Field(default=".", description="folder or file, relative to the workspace or absolute")
    depth: int = Field(default=1, ge=1, le=10, description="how many levels to show")


class LsTool(BaseTool):
    name = "ls"
    description = ToolDescription(
        short="List a folder.",
        long="Folders end with /, files come with their size in bytes, links with their target.",
        usage_notes=(
            (
                "Hidden, git-ignored and generated entries (such as node_modules) are left out "
                "and counted, unless the path itself names one."
            ),
        ),
        examples=(ToolExample({"path": "src", "depth": 2}),),
        important=("To find files by name use glob.",),
    )
    tags = ("files", "search", "read")
    risk_level = ToolRiskLevel.LOW
    kind = ToolKind.READONLY
    category = "files"
    args_schema = LsArgs

    def targets(self, args: Mapping[str, Any]) -> list[Target]:
        return [PathTarget(str(args.get("path", ".")))]

    async def execute(self, *, path: str = ".", depth: int = 1, context: ToolContext | None = None) -> ToolResult:
        try:
            return await run_in_thread(_list, path, depth, self.context_or_default(context))
        except PathRefused as refused:
            return refused.as_result()


def _list(path: str, depth: int, context: ToolContext) -> ToolResult:
    resolved = context.resolve(path)
    if resolved.exposes_process:
        return failure(
            ToolErrorType.PERMISSION, f"{quoted_path(path)} leads into the internals of a process: never listed."
        )
    if not resolved.path.parent.exists():
        raise missing_path(resolved, context)
    with open_directory(resolved.path.parent) as parent:
        name = resolved.path.name or "."
        try:
            status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            raise missing_path(resolved, context, "list the folder above it") from None
        if not stat.S_ISDIR(status.st_mode):
            return ToolResult(
                _describe(shown_given(path), name, parent), f"{path}: 1 entry", metadata={"entries": 1}
            )
        shows_generated = names_generated(resolved.path, context.workspace)
        listing = _Listing(rules_for(resolved.path, context.workspace)[0], depth, shows_generated)
        if not listing.add_folder(name, parent, resolved.path):
            return failure(
                ToolErrorType.PERMISSION, f"You have no permission to list {quoted_path(resolved.given)}."
            )
    notes = listing.left_out.notes()
    if listing.is_cut:
        notes.append(f"cut after {_MAX_ENTRIES} entries; list a folder below")
    body, count = "\n".join(listing.lines) or "(nothing to show)", len(listing.lines)
    output = f"{body}\n[{'; '.join(notes)}]" if notes else body
    display = f"{resolved.given}: {format_count(count, 'entry', 'entries')}"
    return ToolResult(output, display=display, metadata={"entries": count})


@dataclass
class _Listing:
    rules: IgnoreRules
    depth: int
    shows_generated: bool
    lines: list[str] = field(default_factory=list)
    left_out: Walk = field(default_factory=Walk)
    is_cut: bool = False

    def add_folder(self, name: str, parent: int, folder: Path, level: int = 1) -> bool:
        """Add the entries of a folder; False if it may not be listed."""
        try:
            fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        except OSError:
            return False
        try:
            with os.scandir(fd) as found:
                entries = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in found)
            folders = [] if self.shows_generated else [name for name, is_folder in entries if is_folder]
            generated = generated_folders(folders, [name for name, is_folder in entries if not is_folder])
            self.left_out.leave_out(generated)
            for entry, is_folder in entries:
                if entry in generated:
                    continue
                if len(self.lines) >= _MAX_ENTRIES:
                    self.is_cut = True
                    break
                if entry.startswith("."):
                    self.left_out.hidden += 1
                elif self.rules.ignores(folder / entry, is_folder=is_folder):
                    self.left_out.ignored += 1
                else:
                    self.lines.append("  " * (level - 1) + _describe(shown_path(entry), entry, fd))
                    is_deeper = is_folder and level < self.depth
                    if is_deeper and not self.add_folder(entry, fd, folder / entry, level + 1):
                        self.left_out.unreadable += 1
        finally:
            os.close(fd)
        return True


def _describe(shown: str, name: str, parent: int) -> str:
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            return f"{shown} -> {shown_path(os.readlink(name, dir_fd=parent))}"
    except OSError:
        return f"{shown}  (gone)"
    if stat.S_ISDIR(status.st_mode):
        return f"{shown}/"
    size = format_count(status.st_size, "byte") if stat.S_ISREG(status.st_mode) else "(special file)"
    return f"{shown}  {size}"
