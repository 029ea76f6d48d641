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
    ToolErrorType,
    ToolKind,
    ToolResult,
    ToolRiskLevel,
    failure,
)
from tools.file_ops.similar_paths import missing_path
from tools.ignore_files import IgnoreRules, is_hidden
from tools.paths import PathRefused, ResolvedPath, open_directory
from tools.running import run_in_thread
from tools.walk import printable_name

__all__ = ["LsArgs", "LsTool"]

_MAX_ENTRIES = 1_000


class LsArgs(BaseModel):
    """Which folder, and how deep."""

    path: str = Field(default=".", description="folder or file, relative to the workspace or absolute")
    depth: int = Field(default=1, ge=1, le=10, description="how many levels to show")


@dataclass
class _Listing:
    rules: IgnoreRules
    depth: int
    lines: list[str] = field(default_factory=list)
    hidden: int = 0
    ignored: int = 0
    unreadable: int = 0
    is_cut: bool = False

    def notes(self) -> list[str]:
        counted = (("hidden", self.hidden), ("git-ignored", self.ignored), ("unreadable", self.unreadable))
        notes = [f"{count} {what}" for what, count in counted if count]
        left_out = [f"left out: {', '.join(notes)}"] if notes else []
        return [*left_out, f"cut after {_MAX_ENTRIES} entries; list a folder below"] if self.is_cut else left_out


class LsTool(BaseTool):
    """See the module."""

    name = "ls"
    description = (
        "List a folder: folders end with /, files come with their size in bytes, links with their target. "
        "Hidden and git-ignored entries are left out and counted, unless the path itself names one."
    )
    risk_level = ToolRiskLevel.LOW
    kind = ToolKind.READONLY
    category = "files"
    args_schema = LsArgs

    def targets(self, args: Mapping[str, Any]) -> list[Target]:
        """The folder."""
        return [PathTarget(str(args.get("path", ".")))]

    async def execute(self, *, path: str = ".", depth: int = 1, context: ToolContext | None = None) -> ToolResult:
        """List it."""
        surroundings = self.context_or_default(context)
        try:
            return await run_in_thread(_list, path, depth, surroundings)
        except PathRefused as refused:
            return refused.as_result()


def _list(path: str, depth: int, context: ToolContext) -> ToolResult:
    resolved = context.resolve(path)
    if resolved.exposes_process:
        return failure(ToolErrorType.PERMISSION, f"{path!r} leads into the insides of a process: never listed.")
    if not resolved.path.parent.exists():
        raise missing_path(resolved, context)
    with open_directory(resolved.path.parent) as parent:
        name = resolved.path.name or "."
        try:
            status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            raise missing_path(resolved, context, "list the folder above it") from None
        if not stat.S_ISDIR(status.st_mode):
            entry = _described(path, name, parent)
            return ToolResult(entry, display=f"{path}: 1 entry", metadata={"entries": 1})
        return _list_folder(resolved, name, parent, _listing(resolved.path, depth, context.workspace))


def _listing(folder: Path, depth: int, workspace: Path) -> _Listing:
    rules = IgnoreRules(workspace)
    within = (part for part in (folder, *folder.parents) if part.is_relative_to(workspace))
    # What lies below a folder that is ignored itself was asked for by name: no rule above it leaves it out.
    is_named = any(rules.ignores(part, is_folder=True) for part in within)
    return _Listing(IgnoreRules(folder) if is_named else rules, depth)


def _list_folder(resolved: ResolvedPath, name: str, parent: int, listing: _Listing) -> ToolResult:
    if not _walk(name, parent, resolved.path, 1, listing):
        return failure(ToolErrorType.PERMISSION, f"The folder {resolved.given!r} may not be listed by this user.")
    body = "\n".join(listing.lines) or "(nothing to show)"
    notes = listing.notes()
    output = f"{body}\n[{'; '.join(notes)}]" if notes else body
    count = len(listing.lines)
    return ToolResult(output, display=f"{resolved.given}: {count} entries", metadata={"entries": count})


def _walk(name: str, parent: int, folder: Path, level: int, listing: _Listing) -> bool:
    try:
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except OSError:
        return False
    try:
        with os.scandir(fd) as found:
            entries = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in found)
        for entry, is_folder in entries:
            if len(listing.lines) >= _MAX_ENTRIES:
                listing.is_cut = True
                break
            if _is_left_out(entry, folder / entry, is_folder, listing):
                continue
            listing.lines.append("  " * (level - 1) + _described(entry, entry, fd))
            goes_deeper = is_folder and level < listing.depth
            if goes_deeper and not _walk(entry, fd, folder / entry, level + 1, listing):
                listing.unreadable += 1
    finally:
        os.close(fd)
    return True


def _is_left_out(name: str, path: Path, is_folder: bool, listing: _Listing) -> bool:
    if is_hidden(name):
        listing.hidden += 1
        return True
    if listing.rules.ignores(path, is_folder=is_folder):
        listing.ignored += 1
        return True
    return False


def _described(shown_as: str, name: str, parent: int) -> str:
    shown = printable_name(shown_as)
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        target = os.readlink(name, dir_fd=parent) if stat.S_ISLNK(status.st_mode) else ""
    except OSError:
        return f"{shown}  (gone)"
    if target:
        return f"{shown} -> {printable_name(target)}"
    if stat.S_ISDIR(status.st_mode):
        return f"{shown}/"
    return f"{shown}  {status.st_size} bytes" if stat.S_ISREG(status.st_mode) else f"{shown}  (special file)"
