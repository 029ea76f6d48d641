"""Finding a text that was written down not quite as it stands: quotes, blanks, indentation. Never guesses words.

Works on texts with plain line ends.
"""

import re
from typing import NamedTuple

__all__ = ["LEVELS", "Level", "places"]

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


def places(wanted: str, text: str, level: Level) -> list[tuple[int, int]]:
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
