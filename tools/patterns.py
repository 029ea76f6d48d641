"""Regular expressions that cannot run away: every search has a time limit. Knows no files."""

from collections.abc import Iterator

import regex

__all__ = ["BadPattern", "Compiled", "compiled", "spans"]

_SECONDS = 2.0

Compiled = regex.Pattern[str]


class BadPattern(Exception):
    """The pattern cannot be used; the message says why."""


def compiled(pattern: str, *, multiline: bool = True, dot_matches_newline: bool = False) -> Compiled:
    """The pattern, `^` and `$` standing for line borders unless told otherwise.

    Raises:
        BadPattern: it is no regular expression.
    """
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
