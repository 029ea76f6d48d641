"""Finding text in files: a regular expression or a literal, below a folder or in one file, newest files first."""

import os
import re
from collections.abc import Mapping, Sequence
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
    ToolDescription,
    ToolErrorType,
    ToolExample,
    ToolKind,
    ToolResult,
    ToolRiskLevel,
    failure,
)
from tools.file_ops.grep_engine import LineSearch, Matches, Prefilter, required_texts, split_lines
from tools.file_ops.similar_paths import missing_path
from tools.files import read_all
from tools.paths import PathRefused, ResolvedPath, open_regular, shown_path
from tools.patterns import BadGlob, BadPattern, GlobPattern, compile_pattern
from tools.running import run_in_thread
from tools.text import decode, format_count, is_binary
from tools.walk import (
    FoundFile,
    FoundFolder,
    Walk,
    WalkSelection,
    newest_first,
    require_searchable,
    stop_if_cancelled,
    walk,
)

__all__ = ["GrepArgs", "GrepTool", "OutputMode"]

OutputMode = Literal["content", "files_with_matches", "count"]

_LINE_CHARS = 500
_BEFORE_HIT = 150
_MAX_CHARS = 50_000
_PROGRESS_EVERY = 200
_LINE_END = re.compile(r"\n|(?<!\\)(?:\\\\)*\\n")
_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")


class GrepArgs(BaseModel):
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
    name = "grep"
    description = ToolDescription(
        short="Search the contents of files with a regular expression, newest files first.",
        long="A match in a very long line is shown with what is around it.",
        usage_notes=(
            (
                "Hidden, git-ignored and generated files (such as node_modules) are left out and "
                "counted, unless path or include names them."
            ),
        ),
        examples=(ToolExample({"pattern": "def main\\(", "include": "*.py"}),),
        important=("Set literal for text that is not a regular expression.",),
    )
    tags = ("files", "search", "read")
    risk_level = ToolRiskLevel.LOW
    kind = ToolKind.READONLY
    category = "files"
    args_schema = GrepArgs
    max_result_chars = 60_000
    max_matches = 10_000_000
    """At so many matches the search ends with what it has found."""

    def targets(self, args: Mapping[str, Any]) -> list[Target]:
        return [PathTarget(str(args.get("path", ".")))]

    def display_call(self, args: Mapping[str, Any]) -> str:
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
        report = _Report(_on_one_line(pattern), output_mode, max(1, limit), max(0, context))
        report.needs_multiline = not multiline and _LINE_END.search(pattern) is not None
        if not pattern:
            return failure(ToolErrorType.VALIDATION, "The pattern is empty; write what to look for.")
        try:
            expression = compile_pattern(re.escape(pattern) if literal else pattern, dot_matches_newline=multiline)
            search = LineSearch(
                expression, required_texts(pattern, is_literal=literal), multiline, self.max_matches
            )
            wanted = None if include is None else GlobPattern(include)
            grep = _Grep(search, wanted, report, self.context_or_default(tool_context))
            return await run_in_thread(grep.run, path)
        except PathRefused as refused:
            return refused.as_result()
        except (BadGlob, BadPattern) as bad:
            return failure(ToolErrorType.VALIDATION, str(bad))


def _on_one_line(pattern: str) -> str:
    return pattern if pattern.isprintable() else repr(pattern)[1:-1]


@dataclass
class _Report:
    """Collects matches file by file; what exceeds the limit is counted and not shown."""

    pattern: str
    """On one line, as it is shown."""
    mode: OutputMode
    limit: int
    around: int
    """Lines shown before and after a match."""
    needs_multiline: bool = False
    """The pattern contains a line ending, but lines are searched one by one."""
    too_large: int = 0
    stopped: str = ""
    """Why the search ended before everything was searched."""
    _lines: list[str] = field(default_factory=list)
    _chars: int = 0
    _shown_matches: int = 0
    _matches: int = 0
    _files: int = 0
    _binary: int = 0
    _cut_lines: int = 0

    def add(self, name: str, lines: Sequence[str], found: Matches) -> None:
        """Add the matches of a text file."""
        if not found.total:
            return
        hits = found.hits
        self._files += 1
        self._matches += found.total
        if self.mode != "content":
            if self._files <= self.limit:
                more = "+" if self.stopped else ""
                self._show(name if self.mode == "files_with_matches" else f"{name}:{found.total}{more}")
            return
        hits = hits[: max(0, self.limit - self._shown_matches)]
        columns = {number: hit.column for hit in hits for number in range(hit.first, hit.last + 1)}
        last = -1
        for hit in hits:
            if self._chars > _MAX_CHARS:
                return
            start = max(last + 1, hit.first - self.around)
            if self.around and self._lines and start > last + 1:
                self._show("--")
            end = min(len(lines), hit.last + self.around + 1)
            for number in range(start, end):
                mark = ":" if number in columns else "-"
                self._show(f"{name}{mark}{number + 1}{mark}{self._cut(lines[number], columns.get(number, 0))}")
            last = max(last, end - 1)
            self._shown_matches += 1

    @property
    def has_matches(self) -> bool:
        """Whether anything was found."""
        return self._matches + self._binary > 0

    def add_binary(self, name: str) -> None:
        """Add a binary file that matches: it is named and counted, its contents are not shown."""
        self._binary += 1
        self._show(f"{name}: binary file matches")

    def _cut(self, line: str, column: int) -> str:
        if len(line) <= _LINE_CHARS:
            return line
        self._cut_lines += 1
        start = max(0, min(column - _BEFORE_HIT, len(line) - _LINE_CHARS))
        end = start + _LINE_CHARS
        return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")

    def _show(self, line: str) -> None:
        if self._chars <= _MAX_CHARS:
            self._lines.append(_LONE_SURROGATE.sub("\ufffd", line))
            self._chars += len(line) + 1

    def result(self, found: Walk) -> ToolResult:
        """The result; no match is a success too."""
        notes = [f"{self.stopped}; there may be more matches, narrow the search"] if self.stopped else []
        shown, total, what = self._shown_matches, self._matches, "matches"
        if self.mode != "content":
            shown, total, what = min(self._files, self.limit, len(self._lines)), self._files, "files"
        if shown < total:
            more = "at least " if self.stopped else ""
            notes.append(f"the first {shown} of {more}{total} {what}, newest files first; narrow the search")
        if self.needs_multiline and not self._matches:
            notes.append("a pattern that contains a line ending needs multiline=true to match")
        counts = {
            "long lines shortened": self._cut_lines,
            "binary": self._binary,
            "too large to search": self.too_large,
        }
        notes += [f"{count} {text}" for text, count in counts.items() if count]
        notes += found.notes()
        searched = sum(len(folder.regular) for folder in found.folders)
        body = "\n".join(self._lines) or (f"No match for '{self.pattern}' in {format_count(searched, 'file')}.")
        return ToolResult(
            f"{body}\n[{'; '.join(notes)}]" if notes else body,
            display=f"{self.pattern}: {self._matches} in {format_count(self._files, 'file')}",
            metadata={"matches": self._matches, "files": self._files, "withheld": found.withheld},
        )


@dataclass(frozen=True)
class _Grep:
    """One search. Blocking; see the tool."""

    search: LineSearch
    wanted: GlobPattern | None
    report: _Report
    context: ToolContext

    def run(self, path: str) -> ToolResult:
        root = self.context.resolve(path)
        require_searchable(root)
        with Prefilter(self.search.required, self.context, is_all=self.wanted is None) as prefilter:
            found = self._find_files(root, prefilter)
            files = newest_first(prefilter.candidates(found))
        for count, file in enumerate(files, 1):
            stop_if_cancelled(self.context)
            if count % _PROGRESS_EVERY == 0:
                self.context.progress(FilesSearched(count))
            self._search_file(file, found)
            if self.search.stopped:
                break
        return self.report.result(found)

    def _find_files(self, root: ResolvedPath, prefilter: Prefilter) -> Walk:
        if root.path.is_file():
            if not self.context.may_read(root.path):
                return Walk(withheld=1)
            return Walk(folders=[FoundFolder(str(root.path.parent), "", [root.path.name], [])])
        if not root.path.exists():
            raise missing_path(root, self.context)
        if not root.path.is_dir():
            # Neither file nor folder: refused, with a message that says what it is.
            with open_regular(root):
                pass
        if self.wanted is None:
            selection = WalkSelection(lambda _, names: names, lambda _: False, on_folder=prefilter.add_folder)
        else:
            selection = WalkSelection(self.wanted.among, self.wanted.names, on_folder=prefilter.add_folder)
        return walk(root, self.context, selection)

    def _search_file(self, file: FoundFile, found: Walk) -> None:
        path = Path(file.path)
        try:
            with open_regular(ResolvedPath(file.relative, path, inside=True, exposes_process=False)) as fd:
                size = os.fstat(fd).st_size
                if size > self.context.limits.file_bytes:
                    self.report.too_large += 1
                    return
                data = read_all(fd, size)
        except (PathRefused, OSError):
            found.unreadable += 1
            return
        workspace = self.context.workspace
        name = shown_path(str(path.relative_to(workspace) if path.is_relative_to(workspace) else path))
        if is_binary(data):
            if self.search.find([data.decode("latin-1")], 0).total:
                self.report.add_binary(name)
            return
        lines = split_lines(decode(data)[0])
        matches = self.search.find(lines, self.report.limit)
        self.report.stopped = self.search.stopped
        self.report.add(name, lines, matches)
        if self.search.stopped and not self.report.has_matches:
            raise BadPattern(
                f"{self.search.stopped}; write it without nested repetitions, or search in a smaller folder."
            )
