"""A range of the lines of a text, the rest of which is only counted: large files are read a part at a time."""

__all__ = ["range_of_lines"]

_PIECE = 64 * 1024
"""Characters that are counted at once."""


def range_of_lines(text: str, first: int, count: int) -> tuple[list[str], int]:
    """At most `count` lines from number `first` (from 1) on, without their ends; and how many lines there are.

    Lines end as for editors: str.splitlines also splits at form feeds and rare Unicode characters.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    total = text.count("\n") + (not text.endswith("\n") and text != "")
    if first > total:
        return [], total
    begin = _begin_of(text, first)
    end = _behind(text, begin, min(count, total - first + 1))
    # Cut out before it is taken apart: what follows may be most of a large file.
    return text[begin:end].removesuffix("\n").split("\n"), total


def _begin_of(text: str, number: int) -> int:
    at, ends = 0, number - 1
    while (within := text.count("\n", at, at + _PIECE)) < ends:
        at, ends = at + _PIECE, ends - within
    return _behind(text, at, ends)


def _behind(text: str, at: int, lines: int) -> int:
    """The place behind so many lines; the end of the text where the last of them has no end of its own."""
    for _ in range(lines):
        at = text.find("\n", at) + 1 or len(text)
    return at
