"""Finding files by name: a pattern over the paths below a folder, newest first."""

import os
from collections.abc import Mapping
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
from tools.paths import PathRefused, quoted_path, shown_path
from tools.patterns import BadGlob, GlobPattern, enter_literal_folders, literal_prefix, root_pattern
from tools.running import run_in_thread
from tools.text import format_count
from tools.walk import NewestFiles, WalkSelection, walk

__all__ = ["GlobArgs", "GlobTool"]

_MAX_FILES = 200


class GlobArgs(BaseModel):
    pattern: str = Field(description="such as **/*.py or src/*.{ts,tsx}; without a slash it matches at any depth")
    path: str = Field(default=".", description="folder to start in, relative to the workspace or absolute")


class GlobTool(BaseTool):
    name = "glob"
    description = ToolDescription(
        short="Find files by name, newest first.",
        long="** matches across directories, * and ? within one name, {a,b} either.",
        usage_notes=(
            (
                "Hidden, git-ignored and generated files (such as node_modules) are left out and "
                "counted, unless path or pattern names them literally."
            ),
        ),
        examples=(ToolExample({"pattern": "**/*.{ts,tsx}", "path": "web"}),),
        important=("To search the contents of files use grep.",),
    )
    tags = ("files", "search", "read")
    risk_level = ToolRiskLevel.LOW
    kind = ToolKind.READONLY
    category = "files"
    args_schema = GlobArgs

    def targets(self, args: Mapping[str, Any]) -> list[Target]:
        """The folder that is searched, wherever the pattern puts it, and what below it the pattern names."""
        place = root_pattern(str(args.get("path", ".")), str(args.get("pattern", "")))
        named = literal_prefix(place.pattern)
        below = [f"{place.folder.rstrip('/')}/{named}"] if named not in ("", ".") else []
        return [
            PathTarget(path) for path in dict.fromkeys((place.folder, *below, enter_literal_folders(place).folder))
        ]

    def display_call(self, args: Mapping[str, Any]) -> str:
        place = f" in {args['path']}" if args.get("path", ".") != "." else ""
        return f"glob {args.get('pattern', '')!r}{place}"

    async def execute(self, *, pattern: str, path: str = ".", context: ToolContext | None = None) -> ToolResult:
        try:
            return await run_in_thread(_find, pattern, path, self.context_or_default(context))
        except PathRefused as refused:
            return refused.as_result()
        except BadGlob as bad:
            return failure(ToolErrorType.VALIDATION, str(bad))


def _find(pattern: str, path: str, context: ToolContext) -> ToolResult:
    place = root_pattern(path, pattern)
    wanted = GlobPattern(place.pattern)
    # A search follows no link except those that the pattern names: it starts behind them.
    inner = enter_literal_folders(place)
    as_named = context.resolve(place.folder).path.joinpath(inner.folder.removeprefix(place.folder).lstrip("/"))
    if context.resolve(inner.folder).path != as_named:
        place, wanted = inner, GlobPattern(inner.pattern)
    root = context.resolve(place.folder)
    if not root.path.exists():
        raise missing_path(root, context)
    if not root.path.is_dir():
        return failure(
            ToolErrorType.VALIDATION, f"{quoted_path(place.folder)} is not a folder; give the folder to search in."
        )
    newest = NewestFiles(_MAX_FILES)
    found = walk(root, context, WalkSelection(wanted.among, wanted.names, newest))
    # Shown as the other tools take them: relative to the workspace where that is possible.
    inside = root.path.is_relative_to(context.workspace)
    shown = [
        shown_path(os.path.relpath(file.path, context.workspace) if inside else file.path)
        for file in newest.files()
    ]
    total = newest.total
    cut = [f"the newest {len(shown)} of {total} files; narrow the pattern"] if total > len(shown) else []
    notes = "; ".join([*cut, *found.notes()])
    body = "\n".join(shown) or f"No file matches {pattern!r}."
    return ToolResult(
        f"{body}\n[{notes}]" if notes else body,
        display=f"{pattern}: {format_count(total, 'file')}",
        metadata={"files": total, "withheld": found.withheld},
    )
