"""Aligned columns of plain text. Cells are data: they are made safe here, and no markup in them is followed.

Where read-only commands print to: how wide it is, whether it takes colour, and how wide text is on it.

Knows nothing of what is printed. Text is expected to be safe already, see `graph_agent.cli.render.escape`.
"""

import json
import os
import re
import shutil
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, islice
from typing import Any

from graph_agent.cli.render.escape import escape, is_plain_terminal, supports_escapes

__all__ = [
    "colorize",
    "format_fields",
    "format_table",
    "format_time",
    "get_colorizer",
    "id_shortener",
    "line_width",
    "print_json",
    "print_json_line",
    "print_json_lists",
    "print_lines",
    "supports_cursor",
    "supports_unicode",
    "text_width",
    "truncate",
]

_AT_ONCE = 64 * 1024
_CLUSTER = re.compile(
    "[\U0001f1e6-\U0001f1ff]{2}|.(?:[\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0061-\U000e007f]|\u200d.)*", re.DOTALL
)
"""A character, or several that are one picture: a flag, an emoji with its tone and all that is joined to it."""
_COLORS = {
    "idle": "2",
    "success": "32",
    "running": "36",
    "executing": "36",
    "waiting": "33",
    "awaiting_approval": "33",
    "pending": "33",
    "medium": "33",
    "interrupted": "31",
    "resumable": "31",
    "error": "31",
    "high": "1;31",
    "heading": "1",
    "found": "1;33",
}


def print_json(value: Any) -> None:
    """One JSON value on stdout, in ASCII: no character of it can do anything to a terminal."""
    _write(_indented(value, 0) + "\n")


def print_json_lists(head: Mapping[str, Any], lists: Mapping[str, Iterable[Any]]) -> None:
    """An object that ends with lists, as `print_json` prints it, while their values come: there may be many.

    A list that cannot be begun raises before anything is printed: stdout would hold half an object.
    """
    begun = {name: _begun(values) for name, values in lists.items()}
    start = "{"
    for name, value in head.items():
        _write(f"{start}\n  {json.dumps(name)}: {_indented(value, 2)}")
        start = ","
    for name, values in begun.items():
        _write(f"{start}\n  {json.dumps(name)}: [")
        start = ","
        ends = "]"
        for value in values:
            _write(f"{',' if ends != ']' else ''}\n    {_indented(value, 4)}")
            ends = "\n  ]"
        _write(ends)
    _write("\n}\n")


def print_json_line(value: Any) -> None:
    """One JSON value on one line of stdout, as safe as that of `print_json`."""
    _write(json.dumps(value, ensure_ascii=True, default=str).replace("\x7f", "\\u007f") + "\n")


def print_lines(lines: Iterable[str]) -> None:
    """Lines on stdout, many at once but never all of very many."""
    some: list[str] = []
    length = 0
    for line in lines:
        some.append(line)
        length += len(line)
        if length > _AT_ONCE:
            _write("\n".join([*some, ""]))
            some, length = [], 0
    _write("\n".join([*some, ""]))


def line_width() -> int | None:
    """Columns a line may take; None where nobody said, as in a pipe: then nothing is cut off."""
    said = os.environ.get("COLUMNS", "")
    if said.isdigit() and int(said) > 0:
        return int(said)
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def colorize(text: str, meaning: str) -> str:
    """The text in the colour of a status, risk or heading, where the output takes colour."""
    return _in_color(text, meaning) if _takes_color() else text


def get_colorizer() -> Callable[[str, str], str]:
    """`colored` for many texts: whether the output takes colour is found out once."""
    return _in_color if _takes_color() else lambda text, _: text


def supports_unicode() -> bool:
    """Whether lines and boxes of Unicode can be shown."""
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    return supports_escapes() and encoding.startswith("utf")


def supports_cursor() -> bool:
    """Whether stdout is a terminal whose cursor can be moved, and may be."""
    return not is_plain_terminal() and sys.stdout.isatty()


def text_width(text: str) -> int:
    """Columns the text takes: two for wide East Asian characters and an emoji, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(map(_cluster_width, _CLUSTER.findall(text)))


def truncate(text: str, width: int) -> str:
    """The text, cut to a width with an ellipsis where it is longer."""
    if text_width(text) <= width:
        return text
    kept, taken = [], 0
    for cluster in _CLUSTER.findall(text):
        taken += _cluster_width(cluster)
        if taken > width - 1:
            break
        kept.append(cluster)
    return "".join(kept) + "…" * (width > 0)


def format_time(iso: str | None) -> str:
    """A stored UTC time as the local clock shows it, to the second; as it is where it is no time."""
    try:
        return datetime.fromisoformat(iso or "").astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return iso or ""


def _cluster_width(cluster: str) -> int:
    return 2 if len(cluster) > 1 else _character_width(cluster)


def _character_width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def _begun(values: Iterable[Any]) -> Iterator[Any]:
    rest = iter(values)
    return chain(list(islice(rest, 1)), rest)


def _indented(value: Any, columns: int) -> str:
    text = json.dumps(value, indent=2, ensure_ascii=True, default=str).replace("\x7f", "\\u007f")
    # No line break stands within a JSON string.
    return text.replace("\n", "\n" + " " * columns)


def _in_color(text: str, meaning: str) -> str:
    code = _COLORS.get(meaning)
    return f"\x1b[{code}m{text}\x1b[0m" if code else text


def _takes_color() -> bool:
    return not os.environ.get("NO_COLOR") and supports_escapes() and sys.stdout.isatty()


def _write(text: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


_GAP = 2
_WHOLE = 20
_TAIL = 8
_LEAST_OF_PLACE = 10
_LEAST_OF_LAST = 24
_LEAST_TO_SAY = 8


def format_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, place: str = "", leading: int = 2, indent: int = 0
) -> Iterator[str]:
    """Lines of a table; the last column is cut where the screen ends. A cell that is a status gets its colour.

    Of the column headed `place`, which holds paths, only the ends are shown where the last one needs the room. On a
    screen that is too narrow for both, the columns before the last one go, but for the `leading` ones. Who sets the
    lines in by some columns says so as `indent`.
    """
    cells = [list(headings), *([escape(cell) for cell in row] for row in rows)]
    width = line_width()
    room = None if width is None else width - indent
    if room is not None:
        cells = _without_lesser(cells, room, place, leading)
        headings = cells[0]
    widths = _widths(cells)
    if room is not None:
        left = room - sum(widths[:-1]) - _GAP * (len(widths) - 1)
        if place in headings:
            number = headings.index(place)
            missing = max(min(_LEAST_OF_LAST, widths[-1]) - left, 0)
            given = min(missing, max(widths[number] - _LEAST_OF_PLACE, 0))
            widths[number] -= given
            left += given
        widths[-1] = max(left, 1)
    color = get_colorizer()
    for number, row in enumerate(cells):
        *front, last = row
        parts = []
        for cell, width in zip(front, widths, strict=False):
            shown = _ended(cell, width)
            parts.append(color(shown, "heading" if number == 0 else shown) + " " * (width - text_width(shown)))
        parts.append(color(truncate(last, widths[-1]), "heading" if number == 0 else last))
        yield (" " * _GAP).join(parts).rstrip()


def _widths(cells: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(text_width, column)) for column in zip(*cells, strict=True)]


def _without_lesser(cells: list[list[str]], room: int, place: str, leading: int) -> list[list[str]]:
    """The cells without as many columns before the last as leave it no room; the leading ones stay."""
    widths = _widths(cells)
    if place in cells[0]:
        number = cells[0].index(place)
        widths[number] = min(widths[number], _LEAST_OF_PLACE)
    least = min(_LEAST_TO_SAY, widths[-1])
    while len(widths) > leading + 1 and room - sum(width + _GAP for width in widths[:-1]) < least:
        del widths[-2]
    kept = len(widths) - 1
    return [[*row[:kept], row[-1]] for row in cells]


def format_fields(pairs: Mapping[str, str]) -> Iterator[str]:
    """One line per pair that has a value: label, then value, aligned."""
    shown = {label: value for label, value in pairs.items() if value}
    width = max(map(text_width, shown), default=0)
    for label, value in shown.items():
        yield f"{colorize(label.ljust(width), 'heading')}{' ' * _GAP}{escape(value)}"


def id_shortener(among: Iterable[str]) -> Callable[[str], str]:
    """Shortens a long id to its last characters, where they single it out of these; commands take them as an id."""
    ends = Counter(end for one in set(among) for end in {one[:_TAIL], one[-_TAIL:]})

    def short(identifier: str) -> str:
        tail = identifier[-_TAIL:]
        return identifier if len(identifier) <= _WHOLE or ends[tail] > 1 else tail

    return short


def _ended(cell: str, width: int) -> str:
    return cell if text_width(cell) <= width else truncate(cell[::-1], width)[::-1]
