"""Where read-only commands print to: how wide it is, whether it takes colour, and how wide text is on it.

Knows nothing of what is printed. Text is expected to be safe already, see `graph_agent.cli.escape`.
"""

import json
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import chain, islice
from typing import Any

from graph_agent.cli.plainness import is_plain, moves_cursor

__all__ = [
    "clipped",
    "colored",
    "coloring",
    "line_width",
    "local_time",
    "print_json",
    "print_json_line",
    "print_json_lists",
    "print_lines",
    "speaks_unicode",
    "takes_sequences",
    "text_width",
]

_AT_ONCE = 64 * 1024
_CLUSTER = re.compile(
    "[\U0001f1e6-\U0001f1ff]{2}|.(?:[\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0061-\U000e007f]|\u200d.)*", re.DOTALL
)
"""A character, or several that are one picture: a flag, an emoji with its tone and all that is joined to it."""
_COLORS = {
    "at_rest": "2",
    "success": "32",
    "running": "36",
    "executing": "36",
    "awaiting_approval": "33",
    "pending": "33",
    "medium": "33",
    "interrupted": "31",
    "broken_off": "31",
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


def colored(text: str, meaning: str) -> str:
    """The text in the colour of a status, risk or heading, where the output takes colour."""
    return _in_color(text, meaning) if _takes_color() else text


def coloring() -> Callable[[str, str], str]:
    """`colored` for many texts: whether the output takes colour is found out once."""
    return _in_color if _takes_color() else lambda text, _: text


def speaks_unicode() -> bool:
    """Whether lines and boxes of Unicode can be shown."""
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    return moves_cursor() and encoding.startswith("utf")


def takes_sequences() -> bool:
    """Whether stdout is a terminal whose cursor can be moved, and may be."""
    return not is_plain() and sys.stdout.isatty()


def text_width(text: str) -> int:
    """Columns the text takes: two for wide East Asian characters and an emoji, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(map(_cluster_width, _CLUSTER.findall(text)))


def clipped(text: str, width: int) -> str:
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


def local_time(iso: str | None) -> str:
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
    return not os.environ.get("NO_COLOR") and moves_cursor() and sys.stdout.isatty()


def _write(text: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
