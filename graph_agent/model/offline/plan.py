"""How each offline command is run with the tools on offer: a generator of calls that returns the outcome.

A plan yields the next call and is sent its result. It stores nothing, so replaying it over the results in the
history gives the next call after any restart.
"""

import re
import shlex
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, assert_never

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

__all__ = ["CallResult", "Outcome", "Plan", "PlannedCall", "plan_command", "restore_text"]


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A tool call to make next."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of a call, as the history has it."""

    text: str
    is_error: bool
    is_decided: bool = False
    """Whether a person decided against the call, which is no failure of the command."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended."""

    kind: Literal["done", "failed", "missing", "absent", "unreadable"]
    """missing: a tool is not offered; absent: the text to replace is not there; unreadable: no whole file."""
    subject: str
    """What the command was about: a path, a command line, a tool."""
    text: str = ""
    """The tool's own words."""
    is_decided: bool = False
    """As in the result."""


Plan = Generator[PlannedCall, CallResult, Outcome]

_NUMBERED = re.compile(r" *(\d+)\t(.*)")
_CUT = re.compile(r".*\[… line cut, it has \d+ characters\]")
_EMPTY = "(the file is empty)"


def plan_command(command: Command, tools: frozenset[str]) -> Plan:
    """The calls that run a command, with the tools of these names."""
    match command:
        case CreateFile(path=path, content=content):
            return _write(tools, PlannedCall("write_file", {"file_path": path, "content": content}), path)
        case ReplaceText(path=path, old=old, new=new) if "edit_file" in tools:
            replacement = {"old_string": old, "new_string": new, "replace_all": True}
            return _write(tools, PlannedCall("edit_file", {"file_path": path, **replacement}), path)
        case AppendText() | ReplaceText():
            return _rewrite(tools, command)
        case _:
            return _call(tools, *_only_call(tools, command))


def restore_text(listing: str) -> str | None:
    """The file behind a numbered listing; None where the listing is not clearly the whole file."""
    if listing == _EMPTY:
        return ""
    rows = listing.split("\n")
    numbered = [_NUMBERED.fullmatch(row) for row in rows]
    lines = [row[2] + "\n" for number, row in enumerate(numbered, 1) if row and int(row[1]) == number]
    is_whole = len(lines) == len(rows) and not any(map(_CUT.fullmatch, rows))
    return "".join(lines) if is_whole else None


def _call(tools: frozenset[str], call: PlannedCall, subject: str) -> Plan:
    if call.tool not in tools:
        return Outcome("missing", call.tool)
    result = yield call
    return Outcome("failed" if result.is_error else "done", subject, result.text, result.is_decided)


def _only_call(
    tools: frozenset[str], command: ListFiles | ReadFile | FindFiles | SearchText | RunShell | Remember | ShowTodo
) -> tuple[PlannedCall, str]:
    """The one call of a command, and what the command is about."""
    match command:
        case ListFiles(path=subject):
            call = PlannedCall("ls", {"path": subject})
        case ReadFile(path=subject):
            call = PlannedCall("read_file", _range(command))
        case FindFiles(pattern=subject):
            call = _find(tools, command)
        case SearchText(text=subject):
            call = _search(tools, command)
        case RunShell(command=subject):
            call = _shell(subject)
        case Remember(fact=subject):
            call = PlannedCall("save_memory", {"fact": subject})
        case ShowTodo():
            call, subject = PlannedCall("todo_read", {}), "todo"
        case _:
            assert_never(command)
    return call, subject


def _range(command: ReadFile) -> dict[str, Any]:
    arguments: dict[str, Any] = {"file_path": command.path}
    if command.first is not None:
        arguments["offset"] = command.first
        if command.last is not None:
            arguments["limit"] = max(1, command.last - command.first + 1)
    return arguments


def _find(tools: frozenset[str], command: FindFiles) -> PlannedCall:
    pattern, path = command.pattern, command.path
    if "glob" in tools:
        return PlannedCall("glob", {"pattern": pattern} if path == "." else {"pattern": pattern, "path": path})
    # A name that begins with a dash must not become an option of find.
    start = shlex.quote(path if path.startswith((".", "/")) else f"./{path}")
    return _shell(f"find {start} -not -path '*/.*' -name {shlex.quote(pattern)}")


def _search(tools: frozenset[str], command: SearchText) -> PlannedCall:
    if "grep" in tools:
        return PlannedCall("grep", {"pattern": command.text, "path": command.path, "literal": True})
    # Finding nothing, exit code 1, is no failure.
    return _shell(f"grep -rnIF -e {shlex.quote(command.text)} -- {shlex.quote(command.path)} || [ $? -eq 1 ]")


def _shell(line: str) -> PlannedCall:
    return PlannedCall("bash", {"command": line})


def _write(tools: frozenset[str], write: PlannedCall, path: str) -> Plan:
    """Write a file; one that was not read yet, or has changed since, is read first and then written."""
    outcome = yield from _call(tools, write, path)
    must_be_read = re.search(r"\bread\b", outcome.text, re.IGNORECASE) and not outcome.text.startswith("Not run")
    if outcome.kind != "failed" or not must_be_read:
        return outcome
    read = yield from _call(tools, PlannedCall("read_file", {"file_path": path}), path)
    return outcome if read.kind != "done" else (yield from _call(tools, write, path))


def _rewrite(tools: frozenset[str], command: AppendText | ReplaceText) -> Plan:
    path = command.path
    read = yield from _call(tools, PlannedCall("read_file", {"file_path": path}), path)
    if read.kind != "done":
        return read
    present = restore_text(read.text)
    if present is None:
        return Outcome("unreadable", path)
    if isinstance(command, AppendText):
        changed = present + (command.text if command.text.endswith("\n") else command.text + "\n")
    elif command.old in present:
        changed = present.replace(command.old, command.new)
    else:
        return Outcome("absent", path, command.old)
    return (yield from _call(tools, PlannedCall("write_file", {"file_path": path, "content": changed}), path))
