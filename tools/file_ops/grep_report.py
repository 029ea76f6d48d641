"""What a search shows: lines with their file and number, file names, or counts; bounded, with what was left out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from tools.file_ops.matching import Hit
from tools.result import ToolResult
from tools.walking import Walk

__all__ = ["GrepReport", "OutputMode"]

OutputMode = Literal["content", "files_with_matches", "count"]

_LINE_CHARS = 500
_BEFORE_HIT = 150
_MAX_CHARS = 50_000
_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")


@dataclass
class GrepReport:
    """Collects matches file by file; what is over the limit is counted and not shown."""

    pattern: str
    """On one line, as it is told."""
    mode: OutputMode
    limit: int
    around: int
    """Lines shown before and after a match."""
    spans_lines: bool = False
    """Whether the pattern has a line end in it, and lines are searched one by one."""
    too_large: int = 0
    _shown: list[str] = field(default_factory=list)
    _chars: int = 0
    _shown_matches: int = 0
    _matches: int = 0
    _files: int = 0
    _binary: int = 0
    _cut_lines: int = 0

    def add(self, name: str, lines: Sequence[str], hits: Sequence[Hit]) -> None:
        """Take in the matches of a text file."""
        if not hits:
            return
        self._files += 1
        self._matches += len(hits)
        if self.mode == "content":
            self._add_lines(name, lines, hits[: max(0, self.limit - self._shown_matches)])
        elif self._files <= self.limit:
            self._show(name if self.mode == "files_with_matches" else f"{name}:{len(hits)}")

    def add_binary(self, name: str, is_match: bool) -> None:
        """Take in a file that is no text: named and counted where it matches, never shown."""
        if is_match:
            self._binary += 1
            self._show(f"{name}: binary file matches")

    def told(self, found: Walk, searched: int) -> ToolResult:
        """The result: no match is a success too."""
        body = (
            "\n".join(self._shown)
            or f"No match for '{self.pattern}' in {searched} file{'' if searched == 1 else 's'}."
        )
        notes = "; ".join(self._notes(found))
        return ToolResult(
            f"{body}\n[{notes}]" if notes else body,
            display=f"{self.pattern}: {self._matches} in {self._files} file{'' if self._files == 1 else 's'}",
            metadata={"matches": self._matches, "files": self._files, "withheld": found.withheld},
        )

    def _notes(self, found: Walk) -> list[str]:
        notes = []
        shown = self._shown_matches if self.mode == "content" else min(self._files, self.limit, len(self._shown))
        total = self._matches if self.mode == "content" else self._files
        what = "matches" if self.mode == "content" else "files"
        if shown < total:
            notes.append(f"the first {shown} of {total} {what}, newest files first; narrow the search")
        if self.spans_lines and not self._matches:
            notes.append("a pattern with a line end in it matches with multiline=true only")
        if self._cut_lines:
            notes.append(f"{self._cut_lines} long lines shortened")
        if self._binary:
            notes.append(f"{self._binary} binary")
        if self.too_large:
            notes.append(f"{self.too_large} too large to be searched")
        return [*notes, *found.notes()]

    def _add_lines(self, name: str, lines: Sequence[str], hits: Sequence[Hit]) -> None:
        matching = {number: hit for hit in hits for number in range(hit.first, hit.last + 1)}
        last = -1
        for hit in hits:
            if self._chars > _MAX_CHARS:
                return
            start = max(last + 1, hit.first - self.around)
            if self.around and self._shown and start > last + 1:
                self._show("--")
            end = min(len(lines), hit.last + self.around + 1)
            for number in range(start, end):
                mark = ":" if number in matching else "-"
                column = matching[number].column if number in matching else 0
                self._show(f"{name}{mark}{number + 1}{mark}{self._cut(lines[number], column)}")
            last = max(last, end - 1)
            self._shown_matches += 1

    def _cut(self, line: str, column: int) -> str:
        if len(line) <= _LINE_CHARS:
            return line
        self._cut_lines += 1
        start = max(0, min(column - _BEFORE_HIT, len(line) - _LINE_CHARS))
        end = start + _LINE_CHARS
        return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")

    def _show(self, line: str) -> None:
        if self._chars > _MAX_CHARS:
            return
        self._shown.append(_LONE_SURROGATE.sub("\ufffd", line))
        self._chars += len(line) + 1
