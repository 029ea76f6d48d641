"""Regular expressions that cannot run away: neither when they are compiled nor in a search. Knows no files."""

import re
from collections.abc import Iterator

import regex

__all__ = ["BadPattern", "Compiled", "compiled", "spans"]

_SECONDS = 2.0
_MAX_STEPS = 200_000
"""A counted repetition is written out when it is compiled: a few characters can ask for all the memory there is."""

_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]])*\]|\{(\d{1,12})[^}]*\}|.", re.DOTALL)

Compiled = regex.Pattern[str]


class BadPattern(Exception):
    """The pattern cannot be used; the message says why."""


def compiled(pattern: str, *, multiline: bool = True, dot_matches_newline: bool = False) -> Compiled:
    """The pattern, `^` and `$` standing for line borders unless told otherwise.

    Raises:
        BadPattern: it is no regular expression.
    """
    if (steps := _steps(pattern)) > _MAX_STEPS:
        limit = f"written out it has {steps:,} steps, {_MAX_STEPS:,} are possible"
        raise BadPattern(f"{pattern!r} repeats too often: {limit}.")
    flags = (regex.MULTILINE if multiline else 0) | (regex.DOTALL if dot_matches_newline else 0)
    try:
        return regex.compile(pattern, flags)
    except regex.error as error:
        raise BadPattern(f"{pattern!r} is no valid regular expression: {error}.") from error


def spans(pattern: Compiled, text: str, seconds: float = _SECONDS) -> Iterator[tuple[int, int]]:
    """Where the pattern matches, in order, without overlaps.

    Raises:
        BadPattern: it takes too long.
    """
    try:
        for found in pattern.finditer(text, timeout=seconds, concurrent=True):
            yield found.span()
    except TimeoutError as error:
        raise BadPattern(
            f"{pattern.pattern!r} was stopped after {seconds:g} seconds; write it without nested repetitions."
        ) from error


def _steps(pattern: str) -> int:
    """How long the pattern is with its counted repetitions written out, near enough."""
    levels = [(0, 0)]
    for piece in _PIECE.finditer(pattern):
        before, newest = levels[-1]
        if piece[1]:
            levels[-1] = before, newest * int(piece[1])
        elif piece[0] == "(":
            levels.append((0, 0))
        elif piece[0] == ")" and len(levels) > 1:
            levels.pop()
            levels[-1] = sum(levels[-1]), before + newest
        else:
            levels[-1] = before + newest, 1
    return sum(map(sum, levels))
