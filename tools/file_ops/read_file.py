"""Reading a file, or a stored output, in ranges of lines."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from tools.base import (
    BaseTool,
    Limits,
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
from tools.file_ops.images import image_result, media_type_of
from tools.file_ops.similar_paths import missing_path
from tools.files import read_all, read_snapshot, sha256_hex
from tools.paths import PathRefused, open_regular, quoted_path
from tools.running import head_and_tail, run_in_thread
from tools.text import TextForm, decode, format_count, is_binary

__all__ = [
    "ReadFileArgs",
    "ReadFileTool",
    "as_cells",
    "far_lines",
    "numbered",
    "range_of_lines",
]

_BLOB = "blob:"
_MAX_CHARS = 90_000
_REPEATED_CHARS = 2_000
"""Results up to this length are simply given again: looking back costs a model more than it would save."""
_UNSAVED = "the user's editor has these lines, not saved yet; commands and searches see the file on the disk"
_NUL, _SHOWN_NUL = "\0", r"\x00"
_CHUNK = 1024 * 1024
_PIECE = 64 * 1024
"""Characters whose lines are counted at once."""


class ReadFileArgs(BaseModel):
    file_path: str = Field(description="file to read, relative to the workspace or absolute; or a blob: reference")
    offset: int = Field(default=1, ge=1, description="number of the first line to show, counted from 1")
    limit: int = Field(default=2000, ge=1, description="how many lines to show at most")


class ReadFileTool(BaseTool):
    name = "read_file"
    description = ToolDescription(
        short="Read a text file.",
        long="Lines come numbered, at most 2000 unless limit says otherwise. Images are shown,"
        " notebooks come as cells.",
        usage_notes=("Use offset and limit for parts of large files.",),
        examples=(ToolExample({"file_path": "src/app.py", "offset": 120, "limit": 40}),),
        important=("Read a file before you overwrite it.",),
    )
    tags = ("files", "read")
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
        parts = [f"{key} {args[key]}" for key in ("offset", "limit") if key in args]
        return f"read_file {args['file_path']}" + (f" ({', '.join(parts)})" if parts else "")

    async def execute(
        self, *, file_path: str, offset: int = 1, limit: int = 2000, context: ToolContext | None = None
    ) -> ToolResult:
        """Show the range, and record the digest of the whole file as read; of one being edited, of its new text."""
        context = self.context_or_default(context)
        try:
            unsaved = await _find_unsaved(file_path, context)
            path, sha256, result = await run_in_thread(_read, file_path, offset, limit, context, unsaved)
        except PathRefused as refused:
            return refused.as_result()
        if sha256 is None:
            return result
        lines = result.metadata.get("lines")
        until = offset - 1 + lines if isinstance(lines, int) else None
        shown = {"path": path, "sha256": sha256, "offset": offset, "limit": limit, "until": until}
        if shown in context.shown and len(result.output) > _REPEATED_CHARS:
            result = ToolResult(
                f"[{file_path} is unchanged since you read these lines: see that earlier result, above.]",
                f"{Path(file_path).name}: unchanged since it was read",
                metadata={"unchanged": True},
            )
        await context.file_states.set(context.thread_id, path, sha256)
        is_text = result.error is None and "lines" in result.metadata
        return replace(result, metadata={**result.metadata, "shown": shown}) if is_text else result


async def _find_unsaved(file_path: str, context: ToolContext) -> bytes | None:
    """The text that the user's editor has instead of the file's; None if there is no other."""
    if context.buffers is None or file_path.startswith(_BLOB):
        return None
    resolved = context.resolve(file_path)
    try:
        before = await run_in_thread(read_snapshot, resolved, context.limits.file_bytes)
        return await context.buffers.unsaved(resolved.path, before.data)
    except (PathRefused, TimeoutError):
        return None  # What is wrong with the file is said when it is read; and a file on the disk can be read.


def _read(
    file_path: str, offset: int, limit: int, context: ToolContext, unsaved: bytes | None
) -> tuple[str, str | None, ToolResult]:
    """The real path, the digest of a file that was read whole, and the range as a result."""
    if file_path.startswith(_BLOB):
        if context.blobs is None:
            message = f"{file_path!r} cannot be read: no outputs are stored here."
            raise PathRefused(ToolErrorType.NOT_FOUND, message)
        try:
            data = context.blobs.get(file_path)
        except LookupError:
            message = f"No stored output has the reference {file_path!r}; run the call again."
            raise PathRefused(ToolErrorType.NOT_FOUND, message) from None
        return file_path, None, _show(data, file_path, offset, limit, context)
    resolved = context.resolve(file_path)
    if unsaved is not None:
        shown = _show(unsaved, file_path, offset, limit, context, _UNSAVED)
        return str(resolved.path), sha256_hex(unsaved), shown
    try:
        with open_regular(resolved) as fd:
            size = os.fstat(fd).st_size
            if size > context.limits.file_bytes:
                return str(resolved.path), None, _show_far_lines(fd, size, file_path, offset, limit, context)
            data = read_all(fd, size)
    except PathRefused as refused:
        if refused.kind == ToolErrorType.NOT_FOUND:
            raise missing_path(resolved, context) from refused
        raise
    return str(resolved.path), sha256_hex(data), _show(data, file_path, offset, limit, context)


def _show(data: bytes, given: str, offset: int, limit: int, context: ToolContext, note: str = "") -> ToolResult:
    if (media_type := media_type_of(data)) is not None:
        return image_result(data, media_type, given, context.blobs)
    if is_binary(data):
        size = format_count(len(data), "byte")
        return failure(
            ToolErrorType.VALIDATION,
            f"{quoted_path(given)} is a binary file ({size}); use a program that knows its format.",
        )
    text, form = decode(data)
    cells = as_cells(text) if given.endswith(".ipynb") else None
    lines, total = range_of_lines(text if cells is None else cells, offset, limit)
    if offset > max(total, 1):
        end = f"{quoted_path(given)} has {format_count(total, 'line')}"
        return failure(ToolErrorType.VALIDATION, f"{end}; offset {offset} is beyond its end.")
    # As many of the lines as one result has room for; at least one.
    room, line_chars = _MAX_CHARS, context.limits.line_chars
    for number, line in enumerate(lines):
        room -= min(len(line), line_chars) + 8
        if room < 0 and number:
            del lines[number:]
            break
    notes = [*filter(None, (note,)), *_notes(lines, offset, total, form, is_notebook=cells is not None)]
    body = numbered(lines, offset, line_chars) if lines else "(the file is empty)"
    output = f"{body}\n[{'; '.join(notes)}]" if notes else body
    shown = format_count(len(lines), "line") + (f" of {total}" if total != len(lines) else "")
    display = f"{Path(given).name}: {shown}"
    return ToolResult(output, display=display, metadata={"lines": len(lines), "total_lines": total})


def _notes(lines: Sequence[str], offset: int, total: int, form: TextForm, *, is_notebook: bool) -> list[str]:
    """What to know beside the lines."""
    notes, end = [], offset - 1 + len(lines)
    if len(lines) < total:
        notes.append(f"lines {offset} to {end} of {total}" + (f"; continue with offset={end + 1}" * (end < total)))
    if form.encoding != "utf-8":
        notes.append(f"encoding {form.encoding}, kept when the file is written")
    if is_notebook:
        notes.append("a notebook, shown as its cells; in the file it is JSON, which is what edit_file changes")
    if any("\0" in line for line in lines):
        notes.append(r"NUL characters are shown as \x00")
    return notes


def _show_far_lines(fd: int, size: int, given: str, offset: int, limit: int, context: ToolContext) -> ToolResult:
    lines, gave_up = far_lines(fd, offset, limit, context.limits, context.cancellation)
    notes = f"the file has {size} bytes; its lines were not counted"
    if gave_up:
        notes += f"; only its first {context.limits.scan_bytes} bytes were searched"
    if not lines:
        return failure(ToolErrorType.VALIDATION, f"{quoted_path(given)}: no line {offset} was found ({notes}).")
    output = f"{numbered(lines, offset, context.limits.line_chars)}\n[{notes}]"
    display = f"{Path(given).name}: {format_count(len(lines), 'line')}"
    return ToolResult(output, display=display, metadata={"lines": len(lines), "total_lines": None})


def numbered(lines: Iterable[str], first: int, line_chars: int) -> str:
    """The lines with their numbers, `first` being that of the first one; long lines are cut with a notice."""
    return "\n".join(
        f"{number:>6}\t{line.replace(_NUL, _SHOWN_NUL)}"
        if len(line) <= line_chars
        else f"{number:>6}\t{line[:line_chars]} [… line cut, it has {len(line)} characters]"
        for number, line in enumerate(lines, first)
    )


def range_of_lines(text: str, first: int, count: int) -> tuple[list[str], int]:
    """At most `count` lines from number `first` (from 1) on, without their ends; and how many lines there are.

    Lines end as for editors: str.splitlines also splits at form feeds and rare Unicode characters.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    total = text.count("\n") + (not text.endswith("\n") and text != "")
    if first > total:
        return [], total
    begin, ends = 0, first - 1
    while (within := text.count("\n", begin, begin + _PIECE)) < ends:
        begin, ends = begin + _PIECE, ends - within
    begin = _skip_lines(text, begin, ends)
    end = _skip_lines(text, begin, min(count, total - first + 1))
    # The range is cut out before it is split: what follows may be most of a large file.
    return text[begin:end].removesuffix("\n").split("\n"), total


def _skip_lines(text: str, at: int, lines: int) -> int:
    """The place behind so many lines; the end of the text if the last of them has no line ending."""
    for _ in range(lines):
        at = text.find("\n", at) + 1 or len(text)
    return at


def far_lines(fd: int, first: int, count: int, limits: Limits, cancellation: Event) -> tuple[list[str], bool]:
    """Lines `first` to `first + count - 1` of a very large file, and whether `scan_bytes` was reached first.

    Of each line only a little more is kept than is shown.
    """
    kept_bytes, count = limits.line_chars * 4 + 4, min(count, limits.read_lines)
    lines: list[str] = []
    number, scanned = 1, 0
    with open(fd, "rb", buffering=_CHUNK, closefd=False) as file:
        while len(lines) < count and scanned < limits.scan_bytes and not cancellation.is_set():
            line = piece = file.readline(kept_bytes)
            while piece and not piece.endswith(b"\n") and scanned < limits.scan_bytes:
                scanned += len(piece)
                piece = file.readline(_CHUNK)
            scanned += len(piece)
            is_whole = not piece or piece.endswith(b"\n")
            if number >= first and line and is_whole:
                lines.append(line.removesuffix(b"\n").decode("utf-8", "replace").rstrip("\r"))
            if not piece:
                break
            number += 1
    return lines, scanned >= limits.scan_bytes and len(lines) < count


_OUTPUT_CHARS = 2_000


def as_cells(text: str) -> str | None:
    """The cells of a notebook, one below the other; None if the text is not a notebook."""
    try:
        book = json.loads(text)
    except (ValueError, RecursionError):
        return None
    cells = book.get("cells") if isinstance(book, dict) else None
    if not isinstance(cells, list) or not isinstance(book.get("nbformat"), int):
        return None
    shown = [part for number, cell in enumerate(cells, 1) for part in _cell(number, cell)]
    return "\n".join(shown) + "\n" if shown else "(the notebook has no cells)\n"


def _cell(number: int, cell: Any) -> Iterator[str]:
    if not isinstance(cell, Mapping):
        return
    yield f"--- cell {number}: {cell.get('cell_type', 'unknown')} ---"
    yield _joined(cell.get("source")).rstrip("\n")
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        if isinstance(output, Mapping) and (shown := _output(output)):
            yield f"--- output of cell {number} ---"
            yield shown.rstrip("\n")


def _output(output: Mapping[str, Any]) -> str:
    match output.get("output_type"):
        case "stream":
            text = _joined(output.get("text"))
        case "error":
            text = f"{output.get('ename', 'Error')}: {output.get('evalue', '')}"
        case _:
            data = output.get("data")
            kinds = data if isinstance(data, Mapping) else {}
            others = [f"[{kind}, not shown]" for kind in kinds if not str(kind).startswith("text/")]
            text = "\n".join(part for part in (_joined(kinds.get("text/plain")), *others) if part)
    if len(text) <= _OUTPUT_CHARS:
        return text
    return head_and_tail(text, _OUTPUT_CHARS, f"the output has {len(text)} characters")


def _joined(source: Any) -> str:
    """Notebooks store a text as one string or as a list of lines."""
    return "".join(map(str, source)) if isinstance(source, list) else str(source or "")
