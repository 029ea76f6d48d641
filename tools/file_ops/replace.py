"""One replacement in a text: where it goes, what exactly comes there, or why it cannot be. Knows no files.

Carrying the indentation of a file over to lines that were written with another one. Knows lines only.

A text seen with plain line ends, and new lines laid down with the line ends of their surroundings.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Literal

from tools.file_ops.similar_text import LEVELS, Level, describe_nearest, find_similar
from tools.patterns import BadPattern, compile_pattern, find_spans

__all__ = [
    "Mode",
    "PlainText",
    "ReplaceError",
    "ReplaceResult",
    "Replacement",
    "common_ends",
    "indent_of",
    "merge_lines",
    "reindent",
    "replace_text",
    "split_lines",
]

_BLANKS = " \t"
_UNITS = ("\t", "    ", "  ", "        ", "   ")

_Way = Callable[[str], str | None]


def indent_of(line: str) -> str:
    """The blanks a line begins with."""
    return line[: len(line) - len(line.lstrip(_BLANKS))]


def reindent(old: list[str], found: list[str], new: list[str]) -> list[str] | None:
    """The new lines indented as the found ones are, which `old` described line by line.

    None when no one rule explains the difference, or the result would mix what the file does not mix.
    """
    pairs = [
        (indent_of(mine), indent_of(theirs))
        for mine, theirs in zip(old, found, strict=True)
        if theirs.strip(_BLANKS)
    ]
    for way in _ways(pairs):
        if all(way(mine) == theirs for mine, theirs in pairs):
            lines = [_moved(line, way) for line in new]
            return None if None in lines or _mixes(pairs, lines) else [line for line in lines if line is not None]
    return None


def _moved(line: str, way: _Way) -> str | None:
    if not line.strip(_BLANKS):
        return line
    indent = way(indent_of(line))
    return None if indent is None else indent + line.lstrip(_BLANKS)


def _ways(pairs: list[tuple[str, str]]) -> list[_Way]:
    if not pairs:
        return [lambda indent: indent]
    mine, theirs = pairs[0]
    deeper = theirs[: len(theirs) - len(mine)] if theirs.endswith(mine) else ""
    shallower = mine[: len(mine) - len(theirs)] if mine.endswith(theirs) else ""
    base, target = _shared([pair[0] for pair in pairs]), _shared([pair[1] for pair in pairs])
    units = [_by_units(base, target, *pair) for pair in product(_UNITS, _UNITS)]
    whole = [_by_units("", "", *pair) for pair in product(_UNITS, _UNITS)]
    known = dict(pairs)
    return [
        lambda indent: deeper + indent,
        lambda indent: indent.removeprefix(shallower) if indent.startswith(shallower) else None,
        *whole,
        *units,
        known.get,
    ]


def _shared(indents: list[str]) -> str:
    shortest = min(indents, key=len)
    while not all(indent.startswith(shortest) for indent in indents):
        shortest = shortest[:-1]
    return shortest


def _by_units(base: str, target: str, mine: str, theirs: str) -> _Way:
    def way(indent: str) -> str | None:
        rest = indent[len(base) :]
        count = len(rest) // len(mine)
        return target + theirs * count if indent.startswith(base) and rest == mine * count else None

    return way


def _mixes(pairs: list[tuple[str, str]], lines: list[str | None]) -> bool:
    used = set("".join(theirs for _, theirs in pairs))
    return (
        bool(used)
        and not {char for line in lines if line and line.strip(_BLANKS) for char in indent_of(line)} <= used
    )


_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")


@dataclass(frozen=True)
class PlainText:
    """A text whose every line end reads `\\n`, and the way back to the text it was made of."""

    raw: str
    text: str
    pairs: tuple[int, ...] = ()
    """Where in `text` the line ends are that take two characters in `raw`."""

    @classmethod
    def of(cls, raw: str) -> "PlainText":
        """The plain view of a text."""
        if "\r" not in raw:
            return cls(raw, raw)
        pairs = tuple(found.start() - count for count, found in enumerate(re.finditer("\r\n", raw)))
        return cls(raw, raw.replace("\r\n", "\n").replace("\r", "\n"), pairs)

    def raw_span(self, start: int, end: int) -> tuple[int, int]:
        """The same place in the raw text."""
        return start + bisect_left(self.pairs, start), end + bisect_left(self.pairs, end)


def split_lines(text: str) -> list[tuple[str, str]]:
    """Lines with their ends; the last one has none and may be empty."""
    lines = [(found[1], found[2]) for found in _LINE.finditer(text)]
    # A text that ends in an unfinished line matches once more, emptily, behind it.
    return lines[:-1] if len(lines) > 1 and not lines[-2][1] else lines


def common_ends(one: list[str], other: list[str]) -> tuple[int, int]:
    """How many items two lists share at their beginnings, and at their ends behind that."""
    room = min(len(one), len(other))
    head = next((at for at in range(room) if one[at] != other[at]), room)
    room -= head
    tail = next((at for at in range(room) if one[-1 - at] != other[-1 - at]), room)
    return head, tail


def merge_lines(old: list[str], found: list[tuple[str, str]], new: list[str], newline: str | None) -> str:
    """New lines in place of `found`, which `old` described line by line.

    A line that stays keeps its bytes. The others get the line end that stands there when their number stays, else
    `newline`.
    """
    head, tail = common_ends(old, new)
    middle = new[head : len(new) - tail]
    replaced = found[head : len(found) - tail]
    is_one_to_one = len(middle) == len(replaced)
    majority = newline or "\n"
    ends = [end for _, end in replaced] if is_one_to_one else [majority] * len(middle)
    lines = [*found[:head], *zip(middle, ends, strict=True), *(found[len(found) - tail :] if tail else [])]
    return "".join(line + (end or majority) for line, end in lines[:-1]) + lines[-1][0]


Mode = Literal["exact", "flexible", "regex"]

_NUMBERED = re.compile(r"(?m)\A\s*\d+\t")


class ReplaceError(Exception):
    """The text stays; the message says why."""


@dataclass(frozen=True)
class Replacement:
    """What is to be replaced by what."""

    old: str
    new: str
    replace_all: bool = False
    mode: Mode = "flexible"


@dataclass(frozen=True)
class ReplaceResult:
    """The new text."""

    text: str
    count: int
    remark: str = ""
    """What to know where the match was not exact."""


@dataclass(frozen=True)
class _Found:
    spans: list[tuple[int, int]]
    """In the plain text."""
    remark: str = ""
    level: Level | None = None


def replace_text(text: str, wish: Replacement, newline: str | None) -> ReplaceResult:
    """The text with the replacement made; line ends of new lines become `newline`.

    Raises:
        NotReplaced: nothing fits, too much fits, or it would change nothing.
    """
    _require_sense(wish)
    plain = PlainText.of(text)
    if wish.mode == "regex":
        result = _put(plain, _by_pattern(plain.text, wish), wish, newline)
    elif (wish.mode == "exact" or "\r" in wish.old) and wish.old in text:
        result = _put_raw(text, wish, newline)
    else:
        result = _put(plain, *_by_text(plain, wish), newline)
    if result.text == text:
        raise ReplaceError("the replacement is what stands there already; nothing would change.")
    return result


def _require_sense(wish: Replacement) -> None:
    if not wish.old:
        raise ReplaceError("old_string is empty; give the text to be replaced, or use write_file for a whole file.")
    if wish.old == wish.new and wish.mode != "regex":
        raise ReplaceError("old_string and new_string are the same; nothing would change.")


def _by_pattern(text: str, wish: Replacement) -> _Found:
    try:
        found = [span for span in find_spans(compile_pattern(wish.old), text) if span[0] < span[1]]
    except BadPattern as bad:
        raise ReplaceError(str(bad)) from bad
    if not found:
        raise ReplaceError(f"the pattern {wish.old!r} matches no text.")
    _require_one(found, text, wish)
    return _Found(found)


def _by_text(plain: PlainText, wish: Replacement) -> tuple[_Found, Replacement]:
    old = PlainText.of(wish.old).text
    if found := _exactly(plain, old, wish):
        return found, wish
    if wish.mode == "flexible":
        for level in LEVELS:
            if loose := find_similar(old, plain.text, level):
                _require_one(loose, plain.text, wish)
                return _Found(loose, _inexact(level.name), level), wish
        if found := _at_unfinished_end(plain.text, old):
            return found, Replacement(old[:-1], PlainText.of(wish.new).text.removesuffix("\n"), mode=wish.mode)
    raise ReplaceError(_why_not(plain.text, old, wish))


def _exactly(plain: PlainText, old: str, wish: Replacement) -> _Found | None:
    text = plain.text
    first = text.find(old)
    if first < 0:
        return None
    found = _all_places(text, old, first, step=len(old) if wish.replace_all else 1)
    is_raw = all(plain.raw[slice(*plain.raw_span(*span))] == wish.old for span in found)
    if not is_raw and wish.mode == "exact":
        return None
    _require_one(found, text, wish)
    return _Found(found, "" if is_raw else _inexact("the kind of line ends"))


def _all_places(text: str, old: str, first: int, step: int) -> list[tuple[int, int]]:
    found, at = [], first
    while at >= 0:
        found.append((at, at + len(old)))
        at = text.find(old, at + step)
    return found


def _at_unfinished_end(text: str, old: str) -> _Found | None:
    if not old.endswith("\n") or len(old) < 2 or text.endswith("\n") or not text.endswith(old[:-1]):
        return None
    remark = "The file has no newline at its end and still has none."
    return _Found([(len(text) - len(old) + 1, len(text))], remark)


def _require_one(found: list[tuple[int, int]], text: str, wish: Replacement) -> None:
    if len(found) == 1 or wish.replace_all:
        return
    breaks = [match.start() for match in re.finditer("\n", text[: found[min(len(found), 5) - 1][0]])]
    lines = ", ".join(str(bisect_right(breaks, start) + 1) for start, _ in found[:5])
    more = ", …" if len(found) > 5 else ""
    raise ReplaceError(
        f"old_string fits {len(found)} places (lines {lines}{more}); give more of the text around "
        "the one you mean, or set replace_all."
    )


def _put_raw(text: str, wish: Replacement, newline: str | None) -> ReplaceResult:
    found = _all_places(text, wish.old, text.find(wish.old), step=len(wish.old) if wish.replace_all else 1)
    _require_one(found, text, wish)
    pieces = [_piece(PlainText.of(wish.old).text, text[start:end], wish.new, newline, None) for start, end in found]
    return ReplaceResult(_joined(text, found, pieces), len(found))


def _put(plain: PlainText, found: _Found, wish: Replacement, newline: str | None) -> ReplaceResult:
    old = PlainText.of(wish.old).text
    raw_spans, pieces = [], []
    for start, end in found.spans:
        begin = _line_start(plain.text, start) if _is_loose(found) else start
        raw = plain.raw_span(begin, end)
        described = plain.text[start:end] if wish.mode == "regex" else old
        before = plain.text[begin:start]
        raw_spans.append(raw)
        pieces.append(
            _piece(described, plain.raw[slice(*raw)], wish.new, newline, before if _is_loose(found) else None)
        )
    return ReplaceResult(_joined(plain.raw, raw_spans, pieces), len(pieces), found.remark)


def _inexact(overlooked: str) -> str:
    return f"The match was not exact: {overlooked} was overlooked."


def _is_loose(found: _Found) -> bool:
    return found.level is not None and found.level.overlooks_line_ends


def _line_start(text: str, at: int) -> int:
    """The beginning of the line where nothing but blanks stands before; else the place itself."""
    start = text.rfind("\n", 0, at) + 1
    return start if not text[start:at].strip(_BLANKS) else at


def _piece(old: str, found: str, new: str, newline: str | None, before: str | None) -> str:
    """What comes in place of `found`; `before` is given where indentation was overlooked."""
    old_lines, there = old.split("\n"), split_lines(found)
    new_lines = PlainText.of(new).text.split("\n")
    if before is None:
        return merge_lines(old_lines, there, new_lines, newline)
    moved = _indented(old_lines, [line for line, _ in there], new_lines, before)
    if moved is None:
        raise ReplaceError(
            "it fits only when indentation is overlooked, and the new lines cannot be indented as the file "
            "is without guessing; read the file and give both texts with its own indentation."
        )
    # A line that stays is the file's own, with all that was overlooked in it.
    own = {line: theirs for line, (theirs, _) in zip(old_lines, there, strict=True)}
    kept = [own.get(line, shifted) for line, shifted in zip(new_lines, moved, strict=True)]
    return merge_lines([line for line, _ in there], there, kept, newline)


def _indented(old: list[str], there: list[str], new: list[str], before: str) -> list[str] | None:
    if moved := reindent(old, there, new):
        return moved
    # The first line may have been given without its indentation, the others with theirs.
    if not before or old[0][:1] in _BLANKS or new[0][:1] in _BLANKS:
        return None
    rest = reindent([before, *old[1:]], [before, *there[1:]], new[1:])
    mixes = any(set(indent_of(line)) - set(before) for line in new[1:] if line.strip())
    return None if rest is None or mixes else [before + new[0], *rest]


def _joined(text: str, found: list[tuple[int, int]], pieces: list[str]) -> str:
    parts, at = [], 0
    for (start, end), piece in zip(found, pieces, strict=True):
        parts += [text[at:start], piece]
        at = end
    return "".join([*parts, text[at:]])


def _why_not(text: str, old: str, wish: Replacement) -> str:
    if not old.strip():
        return "old_string is nothing but white space and does not stand there like that."
    if _NUMBERED.match(old):
        return "old_string begins with a line number, as read_file shows them; leave the numbers out."
    reason = "old_string does not stand in the file."
    if wish.mode == "exact" and any(find_similar(old, text, level) for level in LEVELS):
        reason = "old_string stands there only with other white space, quotes or line ends; try mode=flexible."
    elif old.endswith("\n") and text.endswith(old[:-1]):
        reason = "old_string ends with a newline, but the file has no newline at its end."
    elif old.casefold() in text.casefold():
        reason = "old_string stands there only with other upper and lower case."
    near = describe_nearest(old, text)
    return f"{reason} Nothing was written. {near or 'Nothing in the file is near; read it again.'}"
