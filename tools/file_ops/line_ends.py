"""A text seen with plain line ends, and new lines laid down with the line ends of their surroundings."""

import re
from bisect import bisect_left
from dataclasses import dataclass

__all__ = ["PlainText", "common_ends", "laid_out", "split"]

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


def split(text: str) -> list[tuple[str, str]]:
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


def laid_out(old: list[str], found: list[tuple[str, str]], new: list[str], newline: str | None) -> str:
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
