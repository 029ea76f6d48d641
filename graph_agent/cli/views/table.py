"""What every view prints with: tables, labelled fields and JSON, cut to the width of the terminal and coloured.

Cells and values are data: they are escaped here, and markup in them has no effect. Lines must be safe already, see
`graph_agent.wording`.
"""

import json
import os
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from itertools import chain, islice
from typing import Any, TypeVar

from graph_agent.cli.render.themes import ansi_code
from graph_agent.config.paths import own_command, runnable_hints
from graph_agent.wording import escape

__all__ = [
    "WORD",
    "colorize",
    "command_hint",
    "format_columns",
    "format_fields",
    "format_table",
    "format_time",
    "get_colorizer",
    "id_shortener",
    "is_plain_terminal",
    "line_width",
    "print_json",
    "print_json_line",
    "print_json_lists",
    "print_lines",
    "print_progress",
    "print_result",
    "print_text",
    "supports_cursor",
    "supports_escapes",
    "text_width",
    "truncate",
    "within_chat",
    "wrap_line",
    "wrap_message",
]

T = TypeVar("T")

_in_chat: ContextVar[bool] = ContextVar("in_chat", default=False)

_COLORS = {
    "idle": "dim",
    "success": "green",
    "running": "cyan",
    "executing": "cyan",
    "waiting": "yellow",
    "awaiting_approval": "yellow",
    "pending": "yellow",
    "medium": "yellow",
    "interrupted": "red",
    "resumable": "red",
    "error": "red",
    "high": "bold red",
    "heading": "bold",
    "found": "bold yellow",
}
_COLOR = re.compile(r"\x1b\[[\d;]*m")
_COLUMN_GAP = re.compile(r"(?<=\S) {2,}(?=\S)")
"""Between two columns."""
WORD = re.compile(r"^ +|[^ ]*\d (?:m?s|min|h|%|[kKMG]B)(?!\w)[^ ]* *|[^ ]+ *")
"""What stays on one line: also a number with its unit, and the indentation of a line."""
_PATH_PART = re.compile(r"/*[^/]+/*|/+")
_GAP = 2
_MAX_UNSHORTENED_ID = 20
_SHORT_ID = 8
_MIN_PATH_WIDTH = 10
_MIN_LAST_WIDTH = 24
_MIN_READABLE_WIDTH = 20
_USUAL_WIDTH = 80
"""Of a terminal that does not know its own."""
_CHUNK_CHARS = 64 * 1024
_CLUSTER = re.compile(
    "[\U0001f1e6-\U0001f1ff]{2}|.(?:[\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0061-\U000e007f]|\u200d.)*", re.DOTALL
)
"""One visible character, which may take several code points: a flag, or an emoji with all that is joined to it."""


@contextmanager
def within_chat() -> Iterator[None]:
    """While a view is printed in a chat: its hints name the commands there, which begin with a slash."""
    token = _in_chat.set(True)
    try:
        yield
    finally:
        _in_chat.reset(token)


def command_hint(command: str, slash_command: str) -> str:
    """A command of this program as the user types it here: in the shell, or in the chat."""
    return slash_command if _in_chat.get() else f"{own_command()} {command}"


def print_result(value: Any, lines: str | Iterable[str], *, as_json: bool) -> None:
    """Print what a command found or did: the value as JSON, else the lines. A text is one line, and is escaped.

    A value that takes long to compute may be given as a function, which is called only for JSON.
    """
    if as_json:
        print_json(value() if callable(value) else value)
    elif isinstance(lines, str):
        print_text(lines)
    else:
        print_lines(lines)


def format_columns(items: Iterable[T], columns: Mapping[str, Callable[[T], str]], **layout: Any) -> Iterator[str]:
    """`format_table` with a row for each item; each column has a heading and a function that returns its cell."""
    rows = [[cell(item) for cell in columns.values()] for item in items]
    return format_table(list(columns), rows, **layout)


def format_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    path_column: str = "",
    fixed_columns: int = 2,
    indent: int = 0,
    whole: str = "",
) -> Iterator[str]:
    """The lines of a table. A status gets its colour; the last column is cut at the terminal's width.

    Args:
        path_column: heading of a column of paths, of which only the ends are shown if the last column needs room.
        fixed_columns: columns at the left that stay on a narrow terminal, where others before the last one go.
        indent: columns by which the caller indents the lines.
        whole: the command that shows a row in full, named below a table that is cut.
    """
    cells = [list(headings), *([escape(cell) for cell in row] for row in rows)]
    width = line_width()
    room = None if width is None else width - indent
    if room is not None:
        cells = _drop_columns(cells, room, path_column, fixed_columns)
    widths = _column_widths(cells)
    if room is not None:
        left = room - sum(widths[:-1]) - _GAP * (len(widths) - 1)
        if path_column in cells[0]:
            number = cells[0].index(path_column)
            missing = max(min(_MIN_LAST_WIDTH, widths[-1]) - left, 0)
            given = min(missing, max(widths[number] - _MIN_PATH_WIDTH, 0))
            widths[number] -= given
            left += given
        widths[-1] = max(left, 1)
    color = get_colorizer()
    for number, row in enumerate(cells):
        *front, last = row
        parts = []
        for cell, column_width in zip(front, widths, strict=False):
            shown = cell if text_width(cell) <= column_width else truncate(cell[::-1], column_width)[::-1]
            padding = " " * (column_width - text_width(shown))
            parts.append(color(shown, "heading" if number == 0 else shown) + padding)
        parts.append(color(truncate(last, widths[-1]), "heading" if number == 0 else last))
        yield (" " * _GAP).join(parts).rstrip()
    if whole and (len(widths) < len(headings) or any(text_width(row[-1]) > widths[-1] for row in cells)):
        yield color(f"… {escape(runnable_hints(f'shortened; in full: `{whole}`'))}", "idle")


def _column_widths(cells: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(text_width, column)) for column in zip(*cells, strict=True)]


def _drop_columns(cells: list[list[str]], room: int, path_column: str, fixed_columns: int) -> list[list[str]]:
    """Drop columns before the last one until it has room; the fixed ones stay."""
    widths = _column_widths(cells)
    if path_column in cells[0]:
        number = cells[0].index(path_column)
        widths[number] = min(widths[number], _MIN_PATH_WIDTH)
    least = min(_MIN_READABLE_WIDTH, widths[-1])
    while len(widths) > fixed_columns + 1 and room - sum(width + _GAP for width in widths[:-1]) < least:
        del widths[-2]
    kept = len(widths) - 1
    return [[*row[:kept], row[-1]] for row in cells]


def format_fields(fields: Mapping[str, str]) -> Iterator[str]:
    """One line per field that has a value: label, then value, aligned."""
    shown = {label: value for label, value in fields.items() if value}
    width = max(map(text_width, shown), default=0)
    for label, value in shown.items():
        yield f"{colorize(label.ljust(width), 'heading')}{' ' * _GAP}{escape(value)}"


def id_shortener(ids: Iterable[str]) -> Callable[[str], str]:
    """A function that shortens a long id to its last characters if they are unique; commands accept them."""
    ends = Counter(end for one in set(ids) for end in {one[:_SHORT_ID], one[-_SHORT_ID:]})

    def shorten(identifier: str) -> str:
        tail = identifier[-_SHORT_ID:]
        return identifier if len(identifier) <= _MAX_UNSHORTENED_ID or ends[tail] > 1 else tail

    return shorten


def format_time(iso: str | None) -> str:
    """A stored UTC time in local time, to the second; text that is not a time is returned unchanged."""
    try:
        return datetime.fromisoformat(iso or "").astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return iso or ""


def print_lines(lines: Iterable[str]) -> None:
    """Print lines, in a terminal folded between words; in large chunks, without holding very many at once."""
    width = line_width() if sys.stdout.isatty() else None
    chunk: list[str] = []
    length = 0
    for line in lines:
        chunk += (
            [line] if width is None else [piece for part in line.split("\n") for piece in wrap_line(part, width)]
        )
        length += len(line)
        if length > _CHUNK_CHARS:
            _write("\n".join([*chunk, ""]))
            chunk, length = [], 0
    _write("\n".join([*chunk, ""]))


def wrap_line(line: str, width: int) -> list[str]:
    """The line folded between words, with its colours; a path that is wider than a line also after a slash.

    Further lines are indented like it, or like its last column where that leaves room.
    """
    if text_width(_COLOR.sub("", line)) <= width:
        return [line]
    plain = _COLOR.sub("", line)
    columns = [len(plain) - len(plain.lstrip(" ")), *(found.end() for found in _COLUMN_GAP.finditer(plain))]
    indent = " " * max((text_width(plain[:at]) for at in columns if at <= width // 2), default=width // 3)
    lines, taken = [""], 0
    for word in _unbreakable_parts(line, width - len(indent)):
        size = text_width(_COLOR.sub("", word))
        needed = text_width(_COLOR.sub("", word).rstrip(" "))
        if taken + needed > width and lines[-1].strip(" "):
            lines[-1] = lines[-1].rstrip(" ")
            lines.append(indent)
            taken = len(indent)
        lines[-1] += word
        taken += size
    lines[-1] = lines[-1].rstrip(" ")
    return lines


def _unbreakable_parts(line: str, room: int) -> Iterator[str]:
    """The words of a line, and the parts of a path that is wider than the room. A URL stays whole, to be opened."""
    for word in WORD.findall(line):
        is_path = text_width(_COLOR.sub("", word).rstrip(" ")) > room and "://" not in word
        yield from _PATH_PART.findall(word) if is_path else (word,)


def wrap_message(text: str) -> str:
    """A message for stderr; where that is a terminal, its lines are folded between words."""
    if not sys.stderr.isatty():
        return text
    columns = os.environ.get("COLUMNS", "")
    try:
        width = int(columns) if columns.isdigit() else os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        return text
    return "\n".join(piece for line in text.split("\n") for piece in wrap_line(line, width or _USUAL_WIDTH))


def print_progress(text: str) -> None:
    """One message on stderr about what the command does."""
    sys.stderr.write(f"{wrap_message(escape(text))}\n")


def print_text(*lines: str) -> None:
    """Print messages of the program, escaped; the commands that they recommend can be copied."""
    print_lines(escape(runnable_hints(line)) for line in lines)


def print_json(value: Any) -> None:
    """Print one JSON value in ASCII, so that no character of it can control a terminal."""
    _write(_to_json(value) + "\n")


def print_json_lists(head: Mapping[str, Any], lists: Mapping[str, Iterable[Any]]) -> None:
    """Print an object whose last values are long lists, as `print_json` does but item by item.

    The first items are read before anything is printed: an error must not leave half an object on stdout.
    """
    started = {}
    for name, values in lists.items():
        iterator = iter(values)
        started[name] = chain(list(islice(iterator, 1)), iterator)
    start = "{"
    for name, value in head.items():
        _write(f"{start}\n  {json.dumps(name)}: {_to_json(value, margin=2)}")
        start = ","
    for name, values in started.items():
        _write(f"{start}\n  {json.dumps(name)}: [")
        start = ","
        end = "]"
        for value in values:
            _write(f"{',' if end != ']' else ''}\n    {_to_json(value, margin=4)}")
            end = "\n  ]"
        _write(end)
    _write("\n}\n")


def print_json_line(value: Any) -> None:
    """Print one JSON value on one line, in ASCII."""
    _write(_to_json(value, indent=None) + "\n")


def _to_json(value: Any, *, indent: int | None = 2, margin: int = 0) -> str:
    text = json.dumps(value, indent=indent, ensure_ascii=True, default=str).replace("\x7f", "\\u007f")
    # JSON strings contain no line breaks, so every line break belongs to the layout.
    return text.replace("\n", "\n" + " " * margin)


def _write(text: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def line_width() -> int | None:
    """Columns of a line; None in a pipe without COLUMNS, where nothing is cut."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns) > 0:
        return int(columns)
    if not sys.stdout.isatty():
        return None
    import shutil

    return shutil.get_terminal_size().columns


def colorize(text: str, meaning: str) -> str:
    """The text in the colour of a status, risk or heading, if stdout takes colour."""
    return get_colorizer()(text, meaning)


def get_colorizer() -> Callable[[str, str], str]:
    """`colorize` for many texts: checks only once whether stdout takes colour."""
    if os.environ.get("NO_COLOR") or not supports_escapes() or not sys.stdout.isatty():
        return lambda text, _: text
    codes = {meaning: ansi_code(style) for meaning, style in _COLORS.items()}
    return lambda text, meaning: f"\x1b[{codes[meaning]}m{text}\x1b[0m" if meaning in codes else text


def supports_cursor() -> bool:
    """Whether stdout is a terminal on which lines can be redrawn."""
    return not is_plain_terminal() and sys.stdout.isatty()


def text_width(text: str) -> int:
    """Columns of the text: two for a wide East Asian character or an emoji, none for a combining one."""
    if text.isascii():
        return len(text)
    return sum(map(_cluster_width, _CLUSTER.findall(text)))


def truncate(text: str, width: int) -> str:
    """The text, cut to a width with an ellipsis if it is longer."""
    if text_width(text) <= width:
        return text
    kept, taken = [], 0
    for cluster in _CLUSTER.findall(text):
        taken += _cluster_width(cluster)
        if taken > width - 1:
            break
        kept.append(cluster)
    return "".join(kept) + "…" * (width > 0)


def _cluster_width(cluster: str) -> int:
    if len(cluster) > 1:
        return 2
    if unicodedata.combining(cluster) or unicodedata.category(cluster) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(cluster) in ("W", "F") else 1


_DUMB = ("dumb", "unknown")


def is_plain_terminal(environment: Mapping[str, str] | None = None) -> bool:
    """Whether nothing is ever redrawn: with GRAPH_AGENT_PLAIN, for screen readers, or TERM=dumb."""
    known = os.environ if environment is None else environment
    return known.get("GRAPH_AGENT_PLAIN", "") not in ("", "0") or not supports_escapes(known)


def supports_escapes(environment: Mapping[str, str] | None = None) -> bool:
    """Whether the terminal understands escape sequences."""
    known = os.environ if environment is None else environment
    return known.get("TERM", "").lower() not in _DUMB
