"""Reading a file, or a stored output, in ranges of lines.

A range of lines from a file too large to be taken in whole; memory stays bounded whatever the file holds.

A range of the lines of a text, the rest of which is only counted: large files are read a part at a time.

Lines of a file as a model reads them: numbered, long ones cut with a notice.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
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
from tools.context import Limits
from tools.file_ops.images import image_result, media_type_of
from tools.file_ops.notebook import as_cells
from tools.file_ops.similar_paths import missing_path
from tools.files import read_all, sha256_hex
from tools.paths import PathRefused, open_regular
from tools.running import run_in_thread
from tools.text import decode, is_binary

__all__ = ["FarLines", "ReadFileArgs", "ReadFileTool", "far_lines", "numbered", "range_of_lines"]

_CHUNK = 1024 * 1024


@dataclass
class FarLines:
    """The lines found."""

    lines: list[str] = field(default_factory=list)
    gave_up: bool = False
    """The bound on scanned bytes was reached first."""


class _Collector:
    """Takes a file's bytes in order and keeps the wanted lines, each up to a bound."""

    def __init__(self, first: int, count: int, kept_bytes: int) -> None:
        self.lines: list[bytes] = []
        self._number = 1
        self._first = first
        self._count = count
        self._kept_bytes = kept_bytes
        self._open = bytearray()

    @property
    def is_full(self) -> bool:
        return len(self.lines) == self._count

    def feed(self, chunk: bytes) -> None:
        position = 0
        while not self.is_full:
            end = chunk.find(b"\n", position)
            self._keep(chunk[position : end if end >= 0 else len(chunk)])
            if end < 0:
                return
            self.close_line()
            position = end + 1

    def close_line(self) -> None:
        if self._number >= self._first and not self.is_full:
            self.lines.append(bytes(self._open))
        self._open.clear()
        self._number += 1

    def finish(self) -> None:
        if self._open:
            self.close_line()

    def _keep(self, piece: bytes) -> None:
        if self._number >= self._first:
            self._open += piece[: max(0, self._kept_bytes - len(self._open))]


def far_lines(fd: int, first: int, count: int, limits: Limits, cancellation: Event) -> FarLines:
    """Lines `first` to `first + count - 1`, each cut a little above what is shown of a line."""
    collector = _Collector(first, min(count, limits.read_lines), limits.line_chars * 4 + 4)
    scanned = 0
    while not collector.is_full and not cancellation.is_set():
        chunk = os.read(fd, _CHUNK)
        if not chunk:
            collector.finish()
            break
        collector.feed(chunk)
        scanned += len(chunk)
        if scanned >= limits.scan_bytes:
            break
    gave_up = scanned >= limits.scan_bytes and not collector.is_full
    return FarLines([line.decode("utf-8", "replace").rstrip("\r") for line in collector.lines], gave_up)


_PIECE = 64 * 1024
"""Characters that are counted at once."""


def range_of_lines(text: str, first: int, count: int) -> tuple[list[str], int]:
    """At most `count` lines from number `first` (from 1) on, without their ends; and how many lines there are.

    Lines end as for editors: str.splitlines also splits at form feeds and rare Unicode characters.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    total = text.count("\n") + (not text.endswith("\n") and text != "")
    if first > total:
        return [], total
    begin = _begin_of(text, first)
    end = _behind(text, begin, min(count, total - first + 1))
    # Cut out before it is taken apart: what follows may be most of a large file.
    return text[begin:end].removesuffix("\n").split("\n"), total


def _begin_of(text: str, number: int) -> int:
    at, ends = 0, number - 1
    while (within := text.count("\n", at, at + _PIECE)) < ends:
        at, ends = at + _PIECE, ends - within
    return _behind(text, at, ends)


def _behind(text: str, at: int, lines: int) -> int:
    """The place behind so many lines; the end of the text where the last of them has no end of its own."""
    for _ in range(lines):
        at = text.find("\n", at) + 1 or len(text)
    return at


def numbered(lines: Iterable[str], first: int, line_chars: int) -> str:
    """The lines with their numbers, `first` being the number of the first one."""
    return "\n".join(f"{number:>6}\t{_cut(line, line_chars)}" for number, line in enumerate(lines, first))


def _cut(line: str, line_chars: int) -> str:
    if len(line) <= line_chars:
        return line
    return f"{line[:line_chars]} [… line cut, it has {len(line)} characters]"


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
        surroundings = self.context_or_default(context)
        if offset < 1 or limit < 1:
            return failure(ToolErrorType.VALIDATION, f"offset {offset} and limit {limit}: both begin at 1.")
        try:
            if file_path.startswith(_BLOB):
                return await run_in_thread(_read_blob, file_path, offset, limit, surroundings)
            path, sha256, result = await run_in_thread(_looked_at, file_path, offset, limit, surroundings)
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
    sha256 = None if content.data is None else sha256_hex(content.data)
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
            raise missing_path(resolved, context) from refused
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
