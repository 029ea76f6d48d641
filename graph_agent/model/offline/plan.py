"""How each offline command is done with the tools on offer: a dialogue of calls and results that ends in a report.

Every dialogue is a generator: it yields the next call, is sent its result, and returns what is told to the user. It
keeps nothing, so replaying it over the results in the history gives the next call after any restart.
"""

import re
import shlex
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from graph_agent.model.offline.commands import (
    AppendText,
    Command,
    CreateFile,
    FindFiles,
    ListFiles,
    ReadFile,
    Remember,
    ReplaceText,
    RunShell,
    SearchText,
    ShowTodo,
)

__all__ = ["Call", "Dialogue", "Report", "Result", "dialogue", "whole_text"]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that the offline mode asks for."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """What the history says came of a call."""

    text: str
    is_error: bool
    is_decided: bool = False
    """A person decided that the call is not to run: no failure of what was asked."""


@dataclass(frozen=True, slots=True)
class Report:
    """How a command ended."""

    kind: str
    """done, failed, missing (a tool that is not offered), absent (text to replace is not there), unreadable."""
    subject: str
    """What the command was about: a path, a command line, a tool."""
    text: str = ""
    """The tool's own words."""
    is_decided: bool = False
    """As of the result."""


Dialogue = Generator[Call, Result, Report]

_NUMBERED = re.compile(r" *(\d+)\t(.*)")
_CUT = re.compile(r".*\[… line cut, it has \d+ characters\]")
_EMPTY = "(the file is empty)"


def dialogue(command: Command, tools: frozenset[str]) -> Dialogue:
    """The calls that do a command, with the tools of these names."""
    match command:
        case CreateFile(path=path, content=content):
            return _read_if_asked(tools, Call("write_file", {"file_path": path, "content": content}), path)
        case AppendText() | ReplaceText():
            return _change(tools, command)
        case ListFiles() | ReadFile() | FindFiles() | SearchText():
            return _one(tools, *_look(tools, command))
        case RunShell(command=line):
            return _one(tools, _shell(line), line)
        case Remember(fact=fact):
            return _one(tools, Call("save_memory", {"fact": fact}), fact)
        case ShowTodo():
            return _one(tools, Call("todo_read", {}), "todo")
        case _:
            assert_never(command)


def _look(tools: frozenset[str], command: ListFiles | ReadFile | FindFiles | SearchText) -> tuple[Call, str]:
    match command:
        case ListFiles(path=path):
            return Call("ls", {"path": path}), path
        case ReadFile(path=path):
            return Call("read_file", _range(command)), path
        case FindFiles(pattern=pattern, path=path):
            # A name that begins with a dash is no option of find.
            start = shlex.quote(path if path.startswith((".", "/")) else f"./{path}")
            shell = f"find {start} -not -path '*/.*' -name {shlex.quote(pattern)}"
            search = Call("glob", {"pattern": pattern} if path == "." else {"pattern": pattern, "path": path})
            return _first_offered(tools, search, _shell(shell)), pattern
        case SearchText(text=text, path=path):
            # Finding nothing is no failure.
            shell = f"grep -rnIF -e {shlex.quote(text)} -- {shlex.quote(path)} || [ $? -eq 1 ]"
            search = Call("grep", {"pattern": text, "path": path, "literal": True})
            return _first_offered(tools, search, _shell(shell)), text


def _one(tools: frozenset[str], call: Call, subject: str) -> Dialogue:
    if call.tool not in tools:
        return Report("missing", call.tool)
    result = yield call
    return Report("failed" if result.is_error else "done", subject, result.text, result.is_decided)


def _first_offered(tools: frozenset[str], call: Call, instead: Call) -> Call:
    return call if call.tool in tools else instead


def _shell(line: str) -> Call:
    return Call("bash", {"command": line})


def _range(command: ReadFile) -> dict[str, Any]:
    if command.first is None:
        return {"file_path": command.path}
    if command.last is None:
        return {"file_path": command.path, "offset": command.first}
    return {"file_path": command.path, "offset": command.first, "limit": max(1, command.last - command.first + 1)}


def _read_if_asked(tools: frozenset[str], write: Call, path: str) -> Dialogue:
    """A file that was not read yet, or has changed since, is read and then written."""
    report = yield from _one(tools, write, path)
    if report.kind != "failed" or not _wants_reading(report.text):
        return report
    seen = yield from _one(tools, Call("read_file", {"file_path": path}), path)
    return report if seen.kind != "done" else (yield from _one(tools, write, path))


def _wants_reading(text: str) -> bool:
    return re.search(r"\bread\b", text, re.IGNORECASE) is not None and not text.startswith("Not run")


def _change(tools: frozenset[str], command: AppendText | ReplaceText) -> Dialogue:
    if isinstance(command, ReplaceText) and "edit_file" in tools:
        old_new = {"old_string": command.old, "new_string": command.new, "replace_all": True}
        edit = Call("edit_file", {"file_path": command.path, **old_new})
        return (yield from _read_if_asked(tools, edit, command.path))
    seen = yield from _one(tools, Call("read_file", {"file_path": command.path}), command.path)
    if seen.kind != "done":
        return seen
    present = whole_text(seen.text)
    if present is None:
        return Report("unreadable", command.path)
    if isinstance(command, ReplaceText) and command.old not in present:
        return Report("absent", command.path, command.old)
    changed = _changed(present, command)
    return (
        yield from _one(tools, Call("write_file", {"file_path": command.path, "content": changed}), command.path)
    )


def _changed(present: str, command: AppendText | ReplaceText) -> str:
    match command:
        case AppendText(text=text):
            return present + (text if text.endswith("\n") else text + "\n")
        case ReplaceText(old=old, new=new):
            return present.replace(old, new)


def whole_text(shown: str) -> str | None:
    """The file behind a numbered listing; None where the listing is not clearly the whole file."""
    if shown == _EMPTY:
        return ""
    rows = [_NUMBERED.fullmatch(row) for row in shown.split("\n")]
    whole = [row[2] + "\n" for number, row in enumerate(rows, 1) if row and int(row[1]) == number]
    is_whole = len(whole) == len(rows) and not any(_CUT.fullmatch(row) for row in shown.split("\n"))
    return "".join(whole) if is_whole else None
