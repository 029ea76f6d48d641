"""Where a pattern matches in one text: by lines, or across them, within a time limit. Knows no files."""

import time
from dataclasses import dataclass, field

from tools.file_ops.certain import Certain
from tools.patterns import BadPattern, Compiled

__all__ = ["Hit", "LineSearch", "split_lines"]

_SECONDS = 20.0
_LONG_LINE = 10_000


@dataclass(frozen=True)
class Hit:
    """One match: its first and last line, counted from 0, and where in the first it begins."""

    first: int
    last: int
    column: int


@dataclass
class LineSearch:
    """One pattern for many texts, and the time it has left for all of them."""

    pattern: Compiled
    certain: Certain
    is_multiline: bool
    _deadline: float = field(default_factory=lambda: time.monotonic() + _SECONDS)

    def hits(self, lines: list[str]) -> list[Hit]:
        """The matches in order; of a line only the first.

        Raises:
            BadPattern: it takes too long.
        """
        try:
            return self._across(lines) if self.is_multiline else self._by_line(lines)
        except TimeoutError as error:
            raise BadPattern(
                f"{self.pattern.pattern!r} was stopped after {_SECONDS:g} seconds; write it without nested "
                "repetitions, or search in a smaller folder."
            ) from error

    def _by_line(self, lines: list[str]) -> list[Hit]:
        found = []
        for number, line in enumerate(lines):
            if not self.certain.may_be_in(line):
                continue
            match = self.pattern.search(line, timeout=self._left(), concurrent=len(line) > _LONG_LINE)
            if match:
                found.append(Hit(number, number, match.start()))
        return found

    def _across(self, lines: list[str]) -> list[Hit]:
        text = "\n".join(lines)
        if not self.certain.may_be_in(text):
            return []
        found, line, passed = [], 0, 0
        for match in self.pattern.finditer(text, timeout=self._left(), concurrent=True):
            line += text.count("\n", passed, match.start())
            passed = match.start()
            column = match.start() - (text.rfind("\n", 0, passed) + 1)
            found.append(Hit(line, line + match.group().rstrip("\n").count("\n"), column))
        return found

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


def split_lines(text: str) -> list[str]:
    """The lines as editors count them, without their ends."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines
