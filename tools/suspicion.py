"""Which names of a folder the patterns of ignore files may speak of, told in one look at all of them.

A cautious first look: a name that is no suspect is named by no pattern, a suspect has to be judged. Only the last
part of a pattern is looked at, so below a folder that is a suspect itself every name is one.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

__all__ = ["NONE", "Suspicion"]

_EXTENSION = re.compile(r"\*\.([^.*?\[\\]+)")
_WILD = re.compile(r"[*?\[\\]")


@dataclass(frozen=True)
class Suspicion:
    """What the last parts of patterns look like."""

    names: frozenset[str] = frozenset()
    extensions: frozenset[str] = frozenset()
    patterns: tuple[str, ...] = ()
    """Regular expressions of what is neither a whole name nor `*.extension`."""

    def joined_by(self, lines: Iterable[str]) -> "Suspicion":
        """With the lines of one more ignore file; the same object where they add nothing."""
        names, extensions, patterns = set(self.names), set(self.extensions), list(self.patterns)
        for line in lines:
            part = _last_part(line)
            if not part:
                continue
            if found := _EXTENSION.fullmatch(part):
                extensions.add(found[1])
            elif _WILD.search(part):
                patterns.append(_roughly(part))
            else:
                names.add(part)
        joined = Suspicion(frozenset(names), frozenset(extensions), tuple(dict.fromkeys(patterns)))
        return self if joined == self else joined

    def among(self, names: Sequence[str]) -> list[str]:
        """The suspects."""
        if self == NONE or not self._may_be_among(names):
            return []
        return [name for name in names if self._is(name)]

    def _may_be_among(self, names: Sequence[str]) -> bool:
        if not self.names.isdisjoint(names):
            return True
        # No name has a slash in it, so that all of them can be searched at once.
        if self._endings is not None and self._endings.search("/".join((*names, ""))):
            return True
        # A line end in a name would hide it from a search through all of them.
        return self._rest is not None and any(map(self._rest.fullmatch, names))

    def _is(self, name: str) -> bool:
        if name in self.names or name.rpartition(".")[2] in self.extensions:
            return True
        return self._rest is not None and self._rest.fullmatch(name) is not None

    @cached_property
    def _endings(self) -> re.Pattern[str] | None:
        return re.compile(rf"\.(?:{'|'.join(map(re.escape, self.extensions))})/") if self.extensions else None

    @cached_property
    def _rest(self) -> re.Pattern[str] | None:
        return re.compile("|".join(self.patterns), re.DOTALL) if self.patterns else None


NONE = Suspicion()


def _last_part(line: str) -> str:
    """What a path or a folder above it has to be called for the pattern to speak of it; "" for no pattern."""
    text = line.strip()
    if not text or line.startswith(("#", "!")):
        return ""
    if "\\" in line or text != line.rstrip():
        return "*"
    while text.endswith(("/", "/**")):
        text = text.removesuffix("/").removesuffix("/**")
    return text.rpartition("/")[2] or "*"


def _roughly(part: str) -> str:
    pieces: list[str] = []
    for char in part:
        if char in "[\\":
            return "".join(pieces) + ".*"
        pieces.append({"*": ".*", "?": "."}.get(char) or re.escape(char))
    return "".join(pieces)
