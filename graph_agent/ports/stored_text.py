"""Text as it is stored and read again: compact JSON, characters that SQLite takes, words for the search, diffs."""

import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

__all__ = [
    "LONGEST_WORD",
    "Hunk",
    "index_text",
    "json_text",
    "parse_diff",
    "plain_text",
    "searchable",
    "storable",
]

_to_json = partial(json.dumps, ensure_ascii=False, separators=(",", ":"), default=str, skipkeys=True)


def json_text(value: Any) -> str:
    """Compact JSON, such as SQLite reads too; never raises for what a checkpoint holds: odd values become text."""
    try:
        text = _to_json(value, allow_nan=False)
    except ValueError:
        # Python writes and reads numbers that JSON does not have: NaN and the infinities.
        text = _to_json(json.loads(_to_json(value), parse_constant=str))
    return storable(text)


def storable(text: str) -> str:
    """The text without lone surrogates: a terminal, a model or a file name may hold them; SQLite and strict servers
    refuse them."""
    return text.encode("utf-8", "replace").decode("utf-8")


LONGEST_WORD = 32
"""As much of a word as an index holds: what is longer is a digest or packed bytes, each of them new."""
_WORD = re.compile(rf"([A-Za-z0-9]{{1,{LONGEST_WORD}}})[A-Za-z0-9]*")


def plain_text(content: Any) -> str:
    """The text of a message's content, whichever of its forms it has."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(plain_text(part) for part in content)
    if isinstance(content, dict):
        return str(content.get("text", "")) or f"[{content.get('type', 'block')}]"
    return "" if content is None else str(content)


def searchable(body: str) -> str:
    """The text of a message, with tool and arguments of each call that it asks for; a body is JSON text."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(message, dict):
        return ""
    calls = message.get("tool_calls")
    lines = [plain_text(message.get("content"))]
    lines += [
        " ".join([str(call.get("name", "")), *_leaves(call.get("args"))])
        for call in (calls if isinstance(calls, list) else ())
        if isinstance(call, dict)
    ]
    return "\n".join(lines)


def index_text(body: str) -> str:
    """The words of ASCII letters and digits; scripts without blanks between words are left to scanning."""
    return " ".join(_WORD.findall(searchable(body)))


def _leaves(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for item in value.values():
                yield from _leaves(item)
        case list():
            for item in value:
                yield from _leaves(item)
        case None | bool():
            return
        case _:
            yield str(value)


_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


class Hunk(NamedTuple):
    """One piece of a unified diff."""

    old: int
    """Number of its first line before the change."""
    new: int
    lines: tuple[str, ...]
    """Each with its sign: a blank, a minus, a plus, or the backslash of a note."""

    def side(self, sign: str) -> str:
        """The text before (`-`) or after (`+`) the change."""
        text, is_ours = "", False
        for line in self.lines:
            if line.startswith("\\"):
                text = text.removesuffix("\n") if is_ours else text
            elif is_ours := line[:1] in (" ", sign):
                text += f"{line[1:]}\n"
        return text

    def trimmed(self, context: int) -> Iterator["Hunk"]:
        """The same with at most so many unchanged lines around each change, in pieces where lines are left out."""
        kept = bytearray(len(self.lines))  # 1 for each line that stays.
        for number, line in enumerate(self.lines):
            if line[:1] != " ":
                around = slice(max(number - context, 0), number + context + 1)
                kept[around] = b"\1" * len(kept[around])
        old, new, end = self.old, self.new, 0
        while (start := kept.find(1, end)) >= 0:
            old, new = _numbers_after(old, new, self.lines[end:start])
            gap = kept.find(0, start)
            end = gap if gap >= 0 else len(kept)
            yield Hunk(old, new, self.lines[start:end])
            old, new = _numbers_after(old, new, self.lines[start:end])


def _numbers_after(old: int, new: int, lines: Sequence[str]) -> tuple[int, int]:
    """The line numbers, in the old and the new text, behind lines of a diff that begin at these."""
    return old + sum(line[:1] in (" ", "-") for line in lines), new + sum(line[:1] in (" ", "+") for line in lines)


def parse_diff(diff: str) -> tuple[list[str], list[Hunk]]:
    """The lines ahead of the first hunk of a unified diff of one file, and its hunks."""
    head: list[str] = []
    starts: list[tuple[int, int]] = []
    bodies: list[list[str]] = []
    for line in diff.removesuffix("\n").split("\n") if diff else ():
        if found := _HUNK.match(line):
            starts.append((int(found[1]), int(found[2])))
            bodies.append([])
        else:
            (bodies[-1] if bodies else head).append(line)
    return head, [Hunk(*start, tuple(body)) for start, body in zip(starts, bodies, strict=True)]
