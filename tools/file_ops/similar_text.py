"""Finding a text that was written down not quite as it stands: quotes, blanks, indentation. Never guesses words.

Works on texts with plain line ends.

The place in a text that is most like what was looked for in vain. Quick on any size; shows little.
"""

import re
from collections import Counter
from typing import NamedTuple
from unicodedata import normalize

__all__ = ["LEVELS", "Level", "describe_nearest", "find_similar"]

_BLANK = "[ \\t\\u00a0]"
_ALIKE = ('"“”„‟«»', "'‘’‚‛`´", "-‐‑‒–—−", " \u00a0")
_CLASS_OF = {char: f"[{re.escape(group)}]" for group in _ALIKE for char in group}


class Level(NamedTuple):
    """What is overlooked."""

    name: str
    """In words: `… was ignored`."""
    overlooks_line_ends: bool = False
    overlooks_blanks: bool = False


LEVELS = (
    Level("the form of quotes, dashes or blanks"),
    Level("white space at line ends", overlooks_line_ends=True),
    Level("white space", overlooks_line_ends=True, overlooks_blanks=True),
)
"""From strict to loose."""


def find_similar(wanted: str, text: str, level: Level) -> list[tuple[int, int]]:
    """Where the text holds what is wanted, as far as the level sees it."""
    if not wanted.strip():
        return []
    return [found.span() for found in re.finditer(_pattern(wanted, level), text)]


def _pattern(wanted: str, level: Level) -> str:
    lines = wanted.split("\n")
    join = rf"{_BLANK}*\n" if level.overlooks_line_ends else r"\n"
    if level.overlooks_blanks:
        body = join.join(_loose(line, is_first=number == 0) for number, line in enumerate(lines))
        return _at_word_borders(wanted, body)
    return join.join(_alike(line.rstrip() if level.overlooks_line_ends else line) for line in lines)


def _loose(line: str, *, is_first: bool) -> str:
    words = f"{_BLANK}+".join(_alike(word) for word in line.split())
    if not words or (is_first and not line[0].isspace()):
        return words
    return (r"(?<![^\n])" if is_first else "") + f"{_BLANK}*{words}"


def _at_word_borders(wanted: str, body: str) -> str:
    stripped = wanted.strip()
    before = r"(?<!\w)" if stripped[0].isalnum() and wanted[0] == stripped[0] else ""
    after = r"(?!\w)" if stripped[-1].isalnum() and wanted[-1] == stripped[-1] else ""
    return f"{before}{body}{after}"


def _alike(text: str) -> str:
    return "".join(_CLASS_OF.get(char) or re.escape(char) for char in text)


_MAX_SHOWN = 15
_MAX_CHARS = 160
_MAX_COMPARED = 200_000
"""So many lines are compared word by word."""
_WORD = re.compile(r"\w+")


def describe_nearest(wanted: str, text: str) -> str:
    """A paragraph that shows the nearest lines and the first difference; empty when nothing is near."""
    asked = wanted.strip("\n").split("\n")
    lines = text.split("\n")
    start = _by_equal_lines(asked, lines)
    if start is None:
        start = _by_words(asked, lines)
    if start is None:
        return ""
    shown = lines[start : start + min(len(asked), _MAX_SHOWN)]
    body = "\n".join(f"{number:>6}\t{_cut(line)}" for number, line in enumerate(shown, start + 1))
    return f"The nearest text is:\n{body}{_first_difference(asked, lines, start)}"


def _by_equal_lines(asked: list[str], lines: list[str]) -> int | None:
    offsets: dict[str, list[int]] = {}
    for number, line in enumerate(asked):
        if line.strip():
            offsets.setdefault(line.strip(), []).append(number)
    votes: Counter[int] = Counter()
    for at, line in enumerate(lines):
        for number in offsets.get(line.strip(), ()):
            votes[max(0, at - number)] += len(line.strip())
    return min(votes, key=lambda start: (-votes[start], start)) if votes else None


def _by_words(asked: list[str], lines: list[str]) -> int | None:
    number = max(range(len(asked)), key=lambda at: len(asked[at].strip()))
    words = set(_WORD.findall(asked[number].casefold()))
    best, score = None, 0.5
    for at, line in enumerate(lines[:_MAX_COMPARED]):
        here = set(_WORD.findall(line[:2_000].casefold()))
        alike = 2 * len(words & here) / (len(words) + len(here) or 1)
        if alike > score or (best is None and alike == score):
            best, score = at, alike
    return None if best is None else max(0, best - number)


def _first_difference(asked: list[str], lines: list[str], start: int) -> str:
    for at, line in enumerate(asked):
        there = lines[start + at] if start + at < len(lines) else None
        if there == line:
            continue
        quoted = ascii if there is not None and normalize("NFKC", there) == normalize("NFKC", line) else repr
        found = "the text ends" if there is None else f"the file has {quoted(_cut(there))}"
        return f"\nThe first difference is in line {start + at + 1}: {found}, old_string has {quoted(_cut(line))}."
    return ""


def _cut(line: str) -> str:
    return line if len(line) <= _MAX_CHARS else f"{line[:_MAX_CHARS]}…"
