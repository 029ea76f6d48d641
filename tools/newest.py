"""Found files by their age: the newest of very many, kept without the rest. Looks at no file."""

import sys
from typing import NamedTuple

__all__ = ["FoundFile", "Newest"]


class FoundFile(NamedTuple):
    """A file or link below the folder; as plain tuples in a set order they sort newest first."""

    age: int
    """Negative time of the last change; 0 where nobody looked."""
    relative: str
    path: str


class Newest:
    """The `count` newest of all that are noted."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._kept: list[FoundFile] = []
        self.total = 0
        """How many there were, kept or not."""
        self.oldest = sys.maxsize
        """What is older need not be noted."""

    def note(self, file: FoundFile) -> None:
        """Take one in."""
        self._kept.append(file)
        # Sorted seldom, so that each costs little however many come.
        if len(self._kept) > 4 * self._count:
            self._kept = self.files()
            self.oldest = self._kept[-1].age

    def files(self) -> list[FoundFile]:
        """The newest first."""
        return sorted(self._kept)[: self._count]
