"""Reading a file, or a stored output, in ranges of lines."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

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
from tools.file_ops.far_range import far_lines
from tools.file_ops.images import image_result, media_type_of
from tools.file_ops.line_range import range_of_lines
from tools.file_ops.nearby import absent
from tools.file_ops.notebook import as_cells
from tools.file_ops.rendering import numbered
from tools.files import digest, read_all
from tools.paths import PathRefused, open_regular
from tools.text import decode, is_binary

__all__ = ["ReadFileArgs", "ReadFileTool"]

_BLOB = "blob:"
_MAX_CHARS = 90_000
_REPEATED_CHARS = 2_000
"""Results up to this length are simply given again: looking back costs a model more than it would save."""
_AS_CELLS = "a notebook, shown as its cells; in the file it is JSON, which is what edit_file changes"


class ReadFileArgs(BaseModel):
    """Which part of which file."""

    file_path: str = Field(description="file to read, relative to the workspace or absolute; or a blob: reference")
    offset: int = Field(default=1, ge=1, description="number of the first line to show, counted from 1")
    limit: int = Field(default=2000, ge=1, description="how many lines to show at most")


class _Content(NamedTuple):
    data: bytes | None
    """None: too large to be taken in whole."""
    path: str
    size: int


class ReadFileTool(BaseTool):
    """See the module."""

    name = "read_file"
    description = (
        "Read a text file. Lines come numbered, 2000 at most unless limit says otherwise; use offset and limit for "
        "parts of large files. Images are shown, notebooks come as cells. Read a file before you overwrite it."
    )
    risk_level = ToolRiskLevel.LOW
    kind = ToolKind.READONLY
    category = "files"
    args_schema = ReadFileArgs
    argument_aliases: ClassVar[Mapping[str, str]] = {"path": "file_path"}
    max_result_chars = 100_000

    def targets(self, args: Mapping[str, Any]) -> list[Target]:
        """The file; a stored output is no path."""
        path = str(args["file_path"])
        return [] if path.startswith(_BLOB) else [PathTarget(path)]

    def display_call(self, args: Mapping[str, Any]) -> str:
        """File and range."""
        parts = [f"{key} {args[key]}" for key in ("offset", "limit") if key in args]
        return f"read_file {args['file_path']}" + (f" ({', '.join(parts)})" if parts else "")

    async def execute(
        self, *, file_path: str, offset: int = 1, limit: int = 2000, context: ToolContext | None = None
    ) -> ToolResult:
        """Show the range and remember the digest of the whole."""
        surroundings = self.context_or_own(context)
        if offset < 1 or limit < 1:
            return failure(ToolErrorType.VALIDATION, f"offset {offset} and limit {limit}: both begin at 1.")
        try:
            if file_path.startswith(_BLOB):
                return await in_thread(_read_blob, file_path, offset, limit, surroundings)
            path, sha256, result = await in_thread(_looked_at, file_path, offset, limit, surroundings)
        except PathRefused as refused:
            return refused.as_result()
        if sha256 is None:
            return result
        shown = {"path": path, "sha256": sha256, "offset": offset, "limit": limit}
        if shown in surroundings.shown and len(result.output) > _REPEATED_CHARS:
            result = _unchanged(file_path)
        await surroundings.file_states.set(surroundings.thread_id, path, sha256)
        is_text = result.error is None and "lines" in result.metadata
        return replace(result, metadata={**result.metadata, "shown": shown}) if is_text else result


def _looked_at(file_path: str, offset: int, limit: int, context: ToolContext) -> tuple[str, str | None, ToolResult]:
    """The real path, the digest of the whole file, None of one too large to be read whole, and the range."""
    content = _read_path(file_path, context)
    sha256 = None if content.data is None else digest(content.data)
    return content.path, sha256, _shown(content, file_path, offset, limit, context)


def _read_path(file_path: str, context: ToolContext) -> _Content:
    resolved = context.resolve(file_path)
    try:
        with open_regular(resolved) as fd:
            size = os.fstat(fd).st_size
            data = read_all(fd, size) if size <= context.limits.file_bytes else None
            return _Content(data, str(resolved.path), size)
    except PathRefused as refused:
        if refused.kind == ToolErrorType.NOT_FOUND:
            raise absent(resolved, context) from refused
        raise


def _read_blob(reference: str, offset: int, limit: int, context: ToolContext) -> ToolResult:
    if context.blobs is None:
        return failure(ToolErrorType.NOT_FOUND, f"{reference!r} cannot be read: no outputs are stored here.")
    try:
        data = context.blobs.get(reference)
    except LookupError:
        return failure(
            ToolErrorType.NOT_FOUND, f"No stored output has the reference {reference!r}; run the call again."
        )
    return _shown(_Content(data, reference, len(data)), reference, offset, limit, context)


def _shown(content: _Content, given: str, offset: int, limit: int, context: ToolContext) -> ToolResult:
    if content.data is None:
        return _far(content, given, offset, limit, context)
    if (media_type := media_type_of(content.data)) is not None:
        return image_result(content.data, media_type, given, context.blobs)
    if is_binary(content.data):
        return failure(
            ToolErrorType.VALIDATION,
            f"{given!r} is a binary file ({content.size} bytes), not text; use a program that knows its format.",
        )
    text, form = decode(content.data)
    cells = as_cells(text) if given.endswith(".ipynb") else None
    lines, total = range_of_lines(text if cells is None else cells, offset, limit)
    if offset > max(total, 1):
        return failure(ToolErrorType.VALIDATION, f"{given!r} has {total} lines; offset {offset} is behind its end.")
    chosen = _fitting(lines, context.limits.line_chars)
    notes = [*_notes(total, offset, len(chosen), form.encoding), *([] if cells is None else [_AS_CELLS])]
    body = numbered(chosen, offset, context.limits.line_chars) if chosen else "(the file is empty)"
    return _result(body, notes, given, len(chosen), total)


def _unchanged(given: str) -> ToolResult:
    told = f"[{given} is unchanged since you read the same lines of it: they stand in that earlier result, above.]"
    return ToolResult(told, f"{Path(given).name}: unchanged since it was read", metadata={"unchanged": True})


def _fitting(lines: Iterable[str], line_chars: int) -> list[str]:
    chosen: list[str] = []
    room = _MAX_CHARS
    for line in lines:
        room -= min(len(line), line_chars) + 8
        if room < 0 and chosen:
            break
        chosen.append(line)
    return chosen


def _notes(total: int, offset: int, shown: int, encoding: str) -> list[str]:
    notes = []
    if shown < total:
        rest = f"; go on with offset={offset + shown}" if offset - 1 + shown < total else ""
        notes.append(f"lines {offset} to {offset - 1 + shown} of {total}{rest}")
    if encoding != "utf-8":
        notes.append(f"encoding {encoding}, kept when the file is written")
    return notes


def _far(content: _Content, given: str, offset: int, limit: int, context: ToolContext) -> ToolResult:
    with open_regular(context.resolve(content.path)) as fd:
        found = far_lines(fd, offset, limit, context.limits, context.cancellation)
    notes = [f"the file has {content.size} bytes; its number of lines was not counted"]
    if found.gave_up:
        notes.append(f"looked at its first {context.limits.scan_bytes} bytes only")
    if not found.lines:
        return failure(ToolErrorType.VALIDATION, f"{given!r}: no line {offset} was found ({'; '.join(notes)}).")
    return _result(numbered(found.lines, offset, context.limits.line_chars), notes, given, len(found.lines), None)


def _result(body: str, notes: list[str], given: str, shown: int, total: int | None) -> ToolResult:
    output = f"{body}\n[{'; '.join(notes)}]" if notes else body
    display = f"{Path(given).name}: {shown} lines" + (f" of {total}" if total not in (None, shown) else "")
    return ToolResult(output, display=display, metadata={"lines": shown, "total_lines": total})
