"""Text that differs only in quotes, white space or indentation; and the nearest text, to explain a failed match."""

import re
from collections import Counter
from typing import NamedTuple
from unicodedata import normalize

__all__ = ["LEVELS", "Level", "describe_nearest", "find_similar"]

_BLANK = "[ \\t\\u00a0]"
_ALIKE = ('"“”„‟«»', "'‘’‚‛`´", "-‐‑‒–—−", " \u00a0")
_CLASS_OF = {char: f"[{re.escape(group)}]" for group in _ALIKE for char in group}


class Level(NamedTuple):
    """What a search ignores."""

    name: str
    """In words: `… was ignored`."""
    ignores_line_ends: bool = False
    ignores_blanks: bool = False


LEVELS = (
    Level("the form of quotes, dashes or blanks"),
    Level("white space at line ends", ignores_line_ends=True),
    Level("white space", ignores_line_ends=True, ignores_blanks=True),
)
"""From strict to loose."""


def find_similar(wanted: str, text: str, level: Level) -> list[tuple[int, int]]:
    """Where the text, whose line endings are plain, matches what is wanted on this level."""
    if not wanted.strip():
        return []
    return [found.span() for found in re.finditer(_pattern(wanted, level), text)]


def _pattern(wanted: str, level: Level) -> str:
    lines = wanted.split("\n")
    join = rf"{_BLANK}*\n" if level.ignores_line_ends else r"\n"
    if level.ignores_blanks:
        body = join.join(_loose(line, is_first=number == 0) for number, line in enumerate(lines))
        return _at_word_borders(wanted, body)
    return join.join(_alike(line.rstrip() if level.ignores_line_ends else line) for line in lines)


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
    """A paragraph with the most similar lines and the first difference; empty when nothing is similar."""
    wanted_lines = wanted.strip("\n").split("\n")
    lines = text.split("\n")
    start = _start_by_equal_lines(wanted_lines, lines)
    if start is None:
        start = _start_by_words(wanted_lines, lines)
    if start is None:
        return ""
    shown = lines[start : start + min(len(wanted_lines), _MAX_SHOWN)]
    body = "\n".join(f"{number:>6}\t{_cut(line)}" for number, line in enumerate(shown, start + 1))
    return f"The most similar text is:\n{body}{_first_difference(wanted_lines, lines, start)}"


def _start_by_equal_lines(wanted_lines: list[str], lines: list[str]) -> int | None:
    offsets: dict[str, list[int]] = {}
    for number, line in enumerate(wanted_lines):
        if line.strip():
            offsets.setdefault(line.strip(), []).append(number)
    votes: Counter[int] = Counter()
    for at, line in enumerate(lines):
        for number in offsets.get(line.strip(), ()):
            votes[max(0, at - number)] += len(line.strip())
    return min(votes, key=lambda start: (-votes[start], start)) if votes else None


def _start_by_words(wanted_lines: list[str], lines: list[str]) -> int | None:
    number = max(range(len(wanted_lines)), key=lambda at: len(wanted_lines[at].strip()))
    words = set(_WORD.findall(wanted_lines[number].casefold()))
    best, score = None, 0.5
    for at, line in enumerate(lines[:_MAX_COMPARED]):
        here = set(_WORD.findall(line[:2_000].casefold()))
        alike = 2 * len(words & here) / (len(words) + len(here) or 1)
        if alike > score or (best is None and alike == score):
            best, score = at, alike
    return None if best is None else max(0, best - number)


def _first_difference(wanted_lines: list[str], lines: list[str], start: int) -> str:
    for at, line in enumerate(wanted_lines):
        there = lines[start + at] if start + at < len(lines) else None
        if there == line:
            continue
        quoted = ascii if there is not None and normalize("NFKC", there) == normalize("NFKC", line) else repr
        found = "the text ends" if there is None else f"the file has {quoted(_cut(there))}"
        return f"\nThe first difference is in line {start + at + 1}: {found}, old_string has {quoted(_cut(line))}."
    return ""


def _cut(line: str) -> str:
    return line if len(line) <= _MAX_CHARS else f"{line[:_MAX_CHARS]}…"
