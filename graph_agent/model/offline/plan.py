"""How each offline command is run with the tools on offer: a generator of calls that returns the outcome.

A plan yields the next call and is sent its result. It stores nothing, so replaying it over the results in the
history gives the next call after any restart.
"""

import re
import shlex
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, assert_never

from graph_agent.calls import PLAN_TOOL
from graph_agent.model.offline.parser import Command

__all__ = ["CallResult", "Outcome", "Plan", "PlannedCall", "plan_command", "restore_text"]


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A tool call to make next."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallResult:
    """A finished call, as the history has it."""

    text: str
    is_error: bool
    is_decided: bool = False
    """Whether a person decided against the call, which is no failure of the command."""
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    message: str = ""
    """The text of the message that made the call."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended."""

    kind: Literal["done", "failed", "missing", "planning", "absent", "unreadable"]
    """missing: a tool is not offered; planning: because of plan mode; absent: the text to replace is not there;
    unreadable: no whole file."""
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
    path = command.path
    match command.kind:
        case "create":
            return _write(tools, path, PlannedCall("write_file", {"file_path": path, "content": command.text}))
        case "replace" if "edit_file" in tools:
            replacement = {"old_string": command.text, "new_string": command.new, "replace_all": True}
            return _write(tools, path, PlannedCall("edit_file", {"file_path": path, **replacement}))
        case "append" | "replace":
            return _rewrite(tools, command)
        case "list":
            return _call(tools, path, PlannedCall("ls", {"path": path}))
        case "read":
            return _call(tools, path, PlannedCall("read_file", _file_lines(command)))
        case kind:
            subject = "todo" if kind == "todo" else command.text
            return _call(tools, subject, _text_call(kind, command, tools))


def restore_text(listing: str) -> str | None:
    """The file behind a numbered listing; None where the listing is not clearly the whole file."""
    if listing == _EMPTY:
        return ""
    rows = listing.split("\n")
    numbered = [_NUMBERED.fullmatch(row) for row in rows]
    lines = [row[2] + "\n" for number, row in enumerate(numbered, 1) if row and int(row[1]) == number]
    is_whole = len(lines) == len(rows) and not any(map(_CUT.fullmatch, rows))
    return "".join(lines) if is_whole else None


def _file_lines(command: Command) -> dict[str, Any]:
    arguments: dict[str, Any] = {"file_path": command.path}
    if command.first is not None:
        arguments["offset"] = command.first
        if command.last is not None:
            arguments["limit"] = max(1, command.last - command.first + 1)
    return arguments


def _text_call(
    kind: Literal["find", "search", "run", "remember", "todo"], command: Command, tools: frozenset[str]
) -> PlannedCall:
    """The one call of a command about a text, or about nothing."""
    path, text = command.path, command.text
    match kind:
        case "find" if "glob" in tools:
            return PlannedCall("glob", {"pattern": text} if path == "." else {"pattern": text, "path": path})
        case "find":
            # A name that begins with a dash must not become an option of find.
            start = shlex.quote(path if path.startswith((".", "/")) else f"./{path}")
            line = f"find {start} -not -path '*/.*' -name {shlex.quote(text)}"
        case "search" if "grep" in tools:
            return PlannedCall("grep", {"pattern": text, "path": path, "literal": True})
        case "search":
            # Finding nothing, exit code 1, is no failure.
            line = f"grep -rnIF -e {shlex.quote(text)} -- {shlex.quote(path)} || [ $? -eq 1 ]"
        case "run":
            line = text
        case "remember":
            return PlannedCall("save_memory", {"fact": text})
        case "todo":
            return PlannedCall("todo_read", {})
        case _ as never:
            assert_never(never)
    return PlannedCall("bash", {"command": line})


def _call(tools: frozenset[str], subject: str, call: PlannedCall) -> Plan:
    if call.tool not in tools:
        return Outcome("planning" if PLAN_TOOL in tools else "missing", call.tool)
    result = yield call
    return Outcome("failed" if result.is_error else "done", subject, result.text, result.is_decided)


def _write(tools: frozenset[str], path: str, write: PlannedCall) -> Plan:
    """Write a file; one that was not read yet, or has changed since, is read first and then written."""
    outcome = yield from _call(tools, path, write)
    must_be_read = re.search(r"\bread\b", outcome.text, re.IGNORECASE) and not outcome.text.startswith("Not run")
    if outcome.kind != "failed" or not must_be_read:
        return outcome
    read = yield from _call(tools, path, PlannedCall("read_file", {"file_path": path}))
    return outcome if read.kind != "done" else (yield from _call(tools, path, write))


def _rewrite(tools: frozenset[str], command: Command) -> Plan:
    """Append or replace by reading the whole file and writing it anew."""
    path, text = command.path, command.text
    read = yield from _call(tools, path, PlannedCall("read_file", {"file_path": path}))
    if read.kind != "done":
        return read
    present = restore_text(read.text)
    if present is None:
        return Outcome("unreadable", path)
    if command.kind == "append":
        changed = present + (text if text.endswith("\n") else text + "\n")
    elif text in present:
        changed = present.replace(text, command.new)
    else:
        return Outcome("absent", path, text)
    return (yield from _call(tools, path, PlannedCall("write_file", {"file_path": path, "content": changed})))
