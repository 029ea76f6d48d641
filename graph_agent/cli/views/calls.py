"""`calls`: the call log as a table and as JSON, and one call in full."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graph_agent.app.reader import read_database
from graph_agent.calls import STATUSES
from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.table import (
    format_table,
    format_time,
    id_shortener,
    print_json_lists,
    print_lines,
    truncate,
)
from graph_agent.errors import NothingYet, UsageError
from graph_agent.inspect import CallView

__all__ = ["call_json", "call_name", "call_table", "format_block", "format_call", "list_calls"]

_MAX_COMMAND_WIDTH = 60


@dataclass(frozen=True, slots=True)
class _CallLog:
    calls: Sequence[CallView] = ()
    shared: frozenset[str] = frozenset()
    """Call ids that occur in several threads."""
    workspaces: Mapping[str, str] = field(default_factory=dict)
    """By thread; empty if the calls are of one thread."""
    selected: CallView | None = None
    """The one call that was asked for."""


def list_calls(database: Path, text: str | None, *, status: str | None, tool: str | None, as_json: bool) -> None:
    """Print the calls of one thread or of all. If `text` is a call id, that call is printed in full.

    Raises:
        UsageError: the status is unknown.
        UnknownId: no id matches.
    """
    if status is not None and status not in STATUSES:
        raise UsageError(f"Unknown call status {status!r}. Choose one of: {', '.join(STATUSES)}.")

    def matches(view: CallView) -> bool:
        return status in (None, view.record["status"]) and tool in (None, view.record["tool_name"])

    if as_json:
        print_json_lists({}, {"calls": (call_json(view) for view in _each_call(database, text) if matches(view))})
        return
    log = _read(database, text)
    calls = [view for view in log.calls if matches(view)]
    if not calls:
        print_lines(["No calls." if status is None and tool is None else "No matching calls."])
        return
    print_lines(call_table(calls, log.shared, workspaces=log.workspaces))
    if log.selected is not None:
        print_lines(format_call(log.selected))


def call_json(view: CallView) -> dict[str, Any]:
    """A call in the JSON shape of `calls`; `answered_by` and `answered_at` if it was answered."""
    answered = {} if view.answer is None else {"answered_by": view.answer.by, "answered_at": view.answer.at}
    return {"thread_id": view.thread_id, **view.record, **answered}


def call_name(thread_id: str, call_id: str, shared: frozenset[str]) -> str:
    """The id that commands accept: the call id, or THREAD:CALL if several threads have a call with this id."""
    return f"{thread_id}:{call_id}" if call_id in shared else call_id


def format_call(view: CallView) -> Iterator[str]:
    """The arguments, result, error and diff of a call in full."""
    record = view.record
    fields = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in record["arguments"].items()
    }
    details = {"error": record["error_msg"], "result": record["result"]}
    match record.get("metadata"):
        case {"diff": {"unified": str(diff)}}:
            details["change"] = diff
        case _:
            pass
    for name, text in (*fields.items(), *((name, text) for name, text in details.items() if text)):
        lines = list(format_block(text.removesuffix("\n")))
        if len(lines) == 1:
            yield f"  {escape(name)}: {lines[0].removeprefix('  │ ')}"
        else:
            yield from (f"  {escape(name)}:", *lines)


def format_block(text: str) -> Iterator[str]:
    """Text of several lines, set off by a bar at the left."""
    yield from (f"  │ {line}" for line in escape(text, multiline=True).split("\n"))


def call_table(
    calls: Sequence[CallView],
    shared: frozenset[str],
    *,
    workspaces: Mapping[str, str] | None = None,
    indent: int = 0,
) -> Iterator[str]:
    """The calls as a table, with ids that commands accept.

    Args:
        workspaces: workspace by thread; adds a column for the thread, and one for the workspaces if they differ.
    """
    has_threads = workspaces is not None
    folders = {view.thread_id: (workspaces or {}).get(view.thread_id, "") for view in calls}
    has_folders = len(set(folders.values())) > 1
    short_thread = id_shortener(view.thread_id for view in calls)
    short_call = id_shortener(view.record["call_id"] for view in calls)

    def row(view: CallView) -> tuple[str, ...]:
        record = view.record
        thread, call_id = short_thread(view.thread_id), record["call_id"]
        return (
            *((thread,) if has_threads else ()),
            call_name(thread, call_id, shared) if call_id in shared else short_call(call_id),
            "abandoned" if record.get("abandoned") else record["status"],
            record.get("risk", "-"),
            record["tool_name"],
            str(record.get("attempt", 1)),
            format_time(record.get("ended_at") or record.get("started_at") or record.get("asked_at")),
            *((folders[view.thread_id],) if has_folders else ()),
            _summary(view),
        )

    head = (
        *(("THREAD",) if has_threads else ()),
        *("CALL", "STATUS", "RISK", "TOOL", "ATTEMPT", "WHEN"),
        *(("WORKSPACE",) if has_folders else ()),
        "SUMMARY",
    )
    rows = [row(view) for view in calls]
    return format_table(head, rows, path_column="WORKSPACE", fixed_columns=2 + has_threads, indent=indent)


def _summary(view: CallView) -> str:
    record = view.record
    display = record.get("summary")
    summary = _with_command(record, display) if display else record["tool_name"]
    if record.get("outside_sandbox"):
        summary += " (outside the sandbox)"
    if view.answer is not None and record["status"] in ("awaiting_approval", "interrupted"):
        return f"{summary} ({view.answer.kind} by {view.answer.by}, not applied yet)"
    has_reason = record["status"] in ("cancelled", "interrupted")
    reason = record.get("error_msg") or (record.get("reason") if has_reason else "")
    return f"{summary} ({reason})" if reason and not summary.endswith(reason) else summary


def _with_command(record: Mapping[str, Any], display: str) -> str:
    """Put the command before the summary of its result, which alone does not tell what ran."""
    command = (record.get("arguments") or {}).get("command")
    is_finished = record["status"] in ("success", "error")
    if record["tool_name"] != "bash" or not is_finished or not isinstance(command, str) or display[:1] == "$":
        return display
    return f"$ {truncate(' '.join(command.split()), _MAX_COMMAND_WIDTH)}: {display}"


def _each_call(database: Path, text: str | None) -> Iterator[CallView]:
    """The calls one by one: a long call log with its results does not fit into memory."""
    try:
        with read_database(database) as reader:
            if text is None:
                yield from reader.iter_calls()
                return
            target = reader.resolve(text)
            if target.kind == "call":
                yield reader.call(target.thread_id, target.id)
            else:
                yield from reader.iter_calls(target.thread_id)
    except NothingYet:
        if text is not None:
            raise


def _read(database: Path, text: str | None) -> _CallLog:
    try:
        with read_database(database) as reader:
            shared = reader.shared_call_ids()
            if text is None:
                return _CallLog(reader.calls(brief=True), shared, reader.workspaces())
            target = reader.resolve(text)
            if target.kind == "call":
                selected = reader.call(target.thread_id, target.id)
                return _CallLog([selected], shared, selected=selected)
            return _CallLog(reader.calls(target.thread_id, brief=True), shared)
    except NothingYet:
        if text is not None:
            raise
        return _CallLog()
