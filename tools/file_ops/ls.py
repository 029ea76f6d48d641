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
from tools.blocking import in_thread
from tools.ignored import IgnoreRules, is_hidden
from tools.paths import PathRefused, ResolvedPath, resolve

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
        surroundings = self.context_or_own(context)
        try:
            return await in_thread(_list, path, depth, surroundings)
        except PathRefused as refused:
            return refused.as_result()


def _list(path: str, depth: int, context: ToolContext) -> ToolResult:
    resolved = resolve(path, workspace=context.workspace)
    if resolved.reaches_process:
        return failure(
            ToolErrorType.PERMISSION, f"{path!r} leads into the insides of a process, which is not listed."
        )
    try:
        status = resolved.path.lstat()
    except FileNotFoundError:
        return failure(ToolErrorType.NOT_FOUND, f"{path!r} does not exist; list the folder above it.")
    except OSError as error:
        return failure(ToolErrorType.PERMISSION, f"{path!r} cannot be looked at: {error.strerror}.")
    if not stat.S_ISDIR(status.st_mode):
        return ToolResult(_described(resolved.path, path), display=f"{path}: 1 entry", metadata={"entries": 1})
    return _list_folder(resolved, depth, context)


def _list_folder(resolved: ResolvedPath, depth: int, context: ToolContext) -> ToolResult:
    listing = _Listing(IgnoreRules(context.workspace), depth)
    # What lies below a folder that is ignored itself was asked for by name: no rule leaves it out.
    is_named = any(
        listing.rules.ignores(folder, is_folder=True)
        for folder in (resolved.path, *resolved.path.parents)
        if folder.is_relative_to(context.workspace)
    )
    if is_named:
        listing.rules = IgnoreRules(resolved.path)
    if not _walk(resolved.path, 1, listing):
        return failure(ToolErrorType.PERMISSION, f"The folder {resolved.given!r} may not be listed by this user.")
    body = "\n".join(listing.lines) or "(nothing to show)"
    notes = listing.notes()
    output = f"{body}\n[{'; '.join(notes)}]" if notes else body
    count = len(listing.lines)
    return ToolResult(output, display=f"{resolved.given}: {count} entries", metadata={"entries": count})


def _walk(folder: Path, level: int, listing: _Listing) -> bool:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return False
    for entry in entries:
        if len(listing.lines) >= _MAX_ENTRIES:
            listing.is_cut = True
            break
        is_folder = entry.is_dir(follow_symlinks=False)
        path = Path(entry.path)
        if _is_left_out(entry.name, path, is_folder, listing):
            continue
        listing.lines.append("  " * (level - 1) + _described(path, entry.name))
        if is_folder and level < listing.depth and not _walk(path, level + 1, listing):
            listing.unreadable += 1
    return True


def _is_left_out(name: str, path: Path, is_folder: bool, listing: _Listing) -> bool:
    if is_hidden(name):
        listing.hidden += 1
        return True
    if listing.rules.ignores(path, is_folder=is_folder):
        listing.ignored += 1
        return True
    return False


def _described(path: Path, name: str) -> str:
    # Control characters in a name would break the listing's lines.
    shown = "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in name)
    try:
        status = path.lstat()
    except OSError:
        return f"{shown}  (gone)"
    if stat.S_ISDIR(status.st_mode):
        return f"{shown}/"
    if stat.S_ISLNK(status.st_mode):
        return f"{shown} -> {os.readlink(path)}"  # noqa: PTH115 - the text as it stands in the link
    if stat.S_ISREG(status.st_mode):
        return f"{shown}  {status.st_size} bytes"
    return f"{shown}  (special file)"
