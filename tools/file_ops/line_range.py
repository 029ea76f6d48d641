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
    lines = text[_begin_of(text, first) :].split("\n", count)
    # The last piece is what follows the range; or nothing, behind the last line end.
    is_over = len(lines) > count or lines[-1] == ""
    return (lines[:-1] if is_over else lines), total


def _begin_of(text: str, number: int) -> int:
    at, ends = 0, number - 1
    while (within := text.count("\n", at, at + _PIECE)) < ends:
        at, ends = at + _PIECE, ends - within
    for _ in range(ends):
        at = text.find("\n", at) + 1
    return at
