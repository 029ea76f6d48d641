"""Carrying the indentation of a file over to lines that were written with another one. Knows lines only."""

from collections.abc import Callable
from itertools import product

__all__ = ["carried_over", "indent_of"]

_BLANKS = " \t"
_UNITS = ("\t", "    ", "  ", "        ", "   ")

_Way = Callable[[str], str | None]


def indent_of(line: str) -> str:
    """The blanks a line begins with."""
    return line[: len(line) - len(line.lstrip(_BLANKS))]


def carried_over(old: list[str], found: list[str], new: list[str]) -> list[str] | None:
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
