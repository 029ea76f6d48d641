"""Brace expansion: the words that one word becomes before the shell looks for anything else in it.

Knows words as pieces, each bare or quoted; reads no syntax.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

__all__ = ["Piece", "spellings"]

_SIGNS = re.compile(r"([{},])")
_NUMBERS = re.compile(r"(-?\d{1,9})\.\.(-?\d{1,9})(?:\.\.(-?\d{1,9}))?")
_LETTERS = re.compile(r"([A-Za-z])\.\.([A-Za-z])")
_MOST = 64
"""So many words of one are told apart."""
_MOST_PIECES = 400


class Piece(NamedTuple):
    """A part of a word."""

    text: str
    is_bare: bool
    """Not quoted: its braces and commas are signs."""


class _Choice(NamedTuple):
    begin: int
    end: int
    ways: list[tuple[Piece, ...]]


def spellings(pieces: Iterable[Piece]) -> tuple[str, ...]:
    """The words, empty ones left out; none where they are too many to be told."""
    waiting = [tuple(_signs_apart(pieces))]
    found: list[str] = []
    while waiting:
        word = waiting.pop()
        choice = _first_choice(word) if len(word) <= _MOST_PIECES else None
        if choice is None:
            found.append("".join(piece.text for piece in word))
        else:
            rest = word[choice.end + 1 :]
            waiting += [(*word[: choice.begin], *way, *rest) for way in reversed(choice.ways)]
        if len(waiting) + len(found) > _MOST:
            return ()
    return tuple(filter(None, found))


def _signs_apart(pieces: Iterable[Piece]) -> Iterator[Piece]:
    for piece in pieces:
        texts = _SIGNS.split(piece.text) if piece.is_bare else [piece.text]
        yield from (Piece(text, is_bare=piece.is_bare) for text in texts if text)


def _first_choice(word: tuple[Piece, ...]) -> _Choice | None:
    """The leftmost pair of braces with commas, or a range, in it."""
    opened: list[list[int]] = []
    found: list[_Choice] = []
    for at, piece in enumerate(word):
        if not piece.is_bare:
            continue
        if piece.text == "{":
            opened.append([at])
        elif piece.text == "," and opened:
            opened[-1].append(at)
        elif piece.text == "}" and opened:
            cuts = [*opened.pop(), at]
            ways = [word[one + 1 : other] for one, other in pairwise(cuts)]
            ways = ways if len(ways) > 1 else _ranged(ways[0])
            found += [_Choice(cuts[0], at, ways)] if ways else []
    return min(found, key=lambda choice: choice.begin, default=None)


def _ranged(inner: tuple[Piece, ...]) -> list[tuple[Piece, ...]]:
    text = inner[0].text if len(inner) == 1 and inner[0].is_bare else ""
    if letters := _LETTERS.fullmatch(text):
        return [(Piece(chr(code), is_bare=True),) for code in _between(ord(letters[1]), ord(letters[2]), 1)]
    if numbers := _NUMBERS.fullmatch(text):
        first, last, step = int(numbers[1]), int(numbers[2]), abs(int(numbers[3] or 1)) or 1
        width = max(map(len, numbers.group(1, 2))) if re.search(r"(?<!\d)0\d", text) else 0
        return [(Piece(str(number).zfill(width), is_bare=True),) for number in _between(first, last, step)]
    return []


def _between(first: int, last: int, step: int) -> range:
    """Both included; of more than can be told, as many as show it."""
    way = step if first <= last else -step
    return range(first, last + (1 if way > 0 else -1), way)[: _MOST + 1]
