"""Finding text in files: a regular expression or a literal, below a folder or in one file, newest files first.

What a search shows: lines with their file and number, file names, or counts; bounded, with what was left out.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from tools.base import (
    BaseTool,
    FilesSearched,
    PathTarget,
    Target,
    ToolContext,
    ToolErrorType,
    ToolKind,
    ToolResult,
    ToolRiskLevel,
    failure,
)
from tools.file_ops.grep_engine import LineSearch, Narrowing, SearchHit, certain, split_lines
from tools.file_ops.similar_paths import missing_path
from tools.files import read_all
from tools.paths import PathRefused, ResolvedPath, open_regular
from tools.patterns import BadGlob, BadPattern, GlobPattern, compile_pattern
from tools.running import run_in_thread
from tools.text import decode, is_binary
from tools.walk import (
    FoundFile,
    FoundFolder,
    Walk,
    WalkSelection,
    newest_first,
    printable_name,
    require_searchable,
    stop_if_cancelled,
    walk,
)

__all__ = ["GrepArgs", "GrepReport", "GrepTool", "OutputMode"]

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

    def add(self, name: str, lines: Sequence[str], hits: Sequence[SearchHit]) -> None:
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

    def _add_lines(self, name: str, lines: Sequence[str], hits: Sequence[SearchHit]) -> None:
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


_PROGRESS_EVERY = 200
_LINE_END = re.compile(r"\n|(?<!\\)(?:\\\\)*\\n")


class GrepArgs(BaseModel):
    """What to look for, where, and how to show it."""

    pattern: str = Field(description="regular expression; with literal=true, the exact text")
    path: str = Field(default=".", description="folder or file to search, relative to the workspace or absolute")
    include: str | None = Field(default=None, description="only files of this name pattern, such as *.{ts,tsx}")
    literal: bool = Field(default=False, description="take the pattern as plain text")
    context: int = Field(default=0, ge=0, le=20, description="lines to show before and after each match")
    output_mode: Literal["content", "files_with_matches", "count"] = Field(
        default="content", description="matching lines, only the files, or the number of matches of each file"
    )
    multiline: bool = Field(default=False, description="let the pattern span lines, and . match line ends")
    limit: int = Field(default=100, ge=1, le=1000, description="how many matches (or files) to show")


class GrepTool(BaseTool):
    """See the module."""

    name = "grep"
    description = (
        "Search the contents of files with a regular expression, newest files first. Hidden and git-ignored "
        "files are left out and counted, unless path or include names them literally."
    )
    risk_level = ToolRiskLevel.LOW
    kind = ToolKind.READONLY
    category = "files"
    args_schema = GrepArgs
    max_result_chars = 60_000

    def targets(self, args: Mapping[str, Any]) -> list[Target]:
        """The folder or file."""
        return [PathTarget(str(args.get("path", ".")))]

    def display_call(self, args: Mapping[str, Any]) -> str:
        """What is looked for, and where."""
        place = f" in {args['path']}" if args.get("path", ".") != "." else ""
        return f"grep {args.get('pattern', '')!r}{place}"

    async def execute(
        self,
        *,
        pattern: str,
        path: str = ".",
        include: str | None = None,
        literal: bool = False,
        context: int = 0,
        output_mode: OutputMode = "content",
        multiline: bool = False,
        limit: int = 100,
        tool_context: ToolContext | None = None,
    ) -> ToolResult:
        """Search the contents."""
        around = self.context_or_default(tool_context)
        report = GrepReport(printable_name(pattern), output_mode, max(1, limit), max(0, context))
        try:
            search = _search(pattern, is_literal=literal, is_multiline=multiline)
            report.spans_lines = not multiline and _LINE_END.search(pattern) is not None
            wanted = GlobPattern(include) if include is not None else None
            return await run_in_thread(_grep, search, wanted, path, report, around)
        except PathRefused as refused:
            return refused.as_result()
        except (BadGlob, BadPattern) as bad:
            return failure(ToolErrorType.VALIDATION, str(bad))


def _search(pattern: str, *, is_literal: bool, is_multiline: bool) -> LineSearch:
    if not pattern:
        raise BadPattern("The pattern is empty; write what to look for.")
    expression = compile_pattern(re.escape(pattern) if is_literal else pattern, dot_matches_newline=is_multiline)
    return LineSearch(expression, certain(pattern, is_literal=is_literal), is_multiline)


def _grep(
    search: LineSearch, wanted: GlobPattern | None, path: str, report: GrepReport, context: ToolContext
) -> ToolResult:
    root = context.resolve(path)
    require_searchable(root)
    with Narrowing(search.certain, context, is_all=wanted is None) as narrowing:
        is_file = root.path.is_file()
        found = _one_file(root, context) if is_file else _below(root, wanted, context, narrowing.take)
        files = newest_first(narrowing.holding(found))
    for count, file in enumerate(files, 1):
        stop_if_cancelled(context)
        if count % _PROGRESS_EVERY == 0:
            context.progress(FilesSearched(count))
        _look_into(file, search, found, report, context)
    return report.told(found, sum(len(folder.regular) for folder in found.folders))


def _below(
    root: ResolvedPath, wanted: GlobPattern | None, context: ToolContext, found: Callable[[FoundFolder], None]
) -> Walk:
    if not root.path.exists():
        raise missing_path(root, context)
    if not root.path.is_dir():
        # Neither file nor folder: refused with what it is.
        with open_regular(root):
            pass
    if wanted is None:
        return walk(root, context, WalkSelection(lambda _, names: names, lambda _: False, found=found))
    return walk(root, context, WalkSelection(wanted.among, wanted.names, found=found))


def _one_file(root: ResolvedPath, context: ToolContext) -> Walk:
    if not context.may_read(root.path):
        return Walk(withheld=1)
    return Walk(folders=[FoundFolder(str(root.path.parent), "", [root.path.name], [])])


def _look_into(file: FoundFile, search: LineSearch, found: Walk, report: GrepReport, context: ToolContext) -> None:
    path = Path(file.path)
    try:
        with open_regular(ResolvedPath(file.relative, path, inside=True, exposes_process=False)) as fd:
            size = os.fstat(fd).st_size
            if size > context.limits.file_bytes:
                report.too_large += 1
                return
            data = read_all(fd, size)
    except (PathRefused, OSError):
        found.unreadable += 1
        return
    name = printable_name(_relative(path, context.workspace))
    if is_binary(data):
        report.add_binary(name, bool(search.hits([data.decode("latin-1")])))
        return
    lines = split_lines(decode(data)[0])
    report.add(name, lines, search.hits(lines))


def _relative(path: Path, workspace: Path) -> str:
    return str(path.relative_to(workspace) if path.is_relative_to(workspace) else path)
