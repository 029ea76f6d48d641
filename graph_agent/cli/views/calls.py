"""`calls`: the ledger as a table and as JSON.

One call whole: what it was given and what came of it. Lines that are safe to print; reads nothing.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
from graph_agent.inspect import CallView, Reader

__all__ = ["call_json", "call_name", "call_table", "format_call", "list_calls"]


def format_call(view: CallView) -> Iterator[str]:
    """The arguments and the result, nothing of them left out."""
    record = view.record
    for name, value in record["arguments"].items():
        yield from _field(name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    if record["error_msg"]:
        yield from _field("error", record["error_msg"])
    if record["result"]:
        yield from _field("result", record["result"])
    match record.get("metadata"):
        case {"diff": {"unified": str(diff)}} if diff:
            yield from _field("change", diff)
        case _:
            pass


def _field(name: str, text: str) -> Iterator[str]:
    first, *more = escape(text.removesuffix("\n"), multiline=True).split("\n")
    if not more:
        yield f"  {escape(name)}: {first}"
        return
    yield f"  {escape(name)}:"
    yield from (f"  │ {line}" for line in (first, *more))


_MOST_OF_COMMAND = 60


@dataclass(frozen=True, slots=True)
class _Ledger:
    calls: Sequence[CallView] = ()
    shared: frozenset[str] = frozenset()
    workspaces: Mapping[str, str] = field(default_factory=dict)
    named: CallView | None = None
    """The one call that was asked for."""


def list_calls(database: Path, text: str | None, *, status: str | None, tool: str | None, as_json: bool) -> None:
    """Print the calls of one thread, or of all; a single call that was named is shown whole.

    Raises:
        UsageError: there is no such status.
        UnknownId: there is no such thread.
    """
    if status is not None and status not in STATUSES:
        raise UsageError(f"{status!r} is not a status of a call; use one of: {', '.join(STATUSES)}.")

    def is_wanted(view: CallView) -> bool:
        return status in (None, view.record["status"]) and tool in (None, view.record["tool_name"])

    if as_json:
        print_json_lists({}, {"calls": (call_json(view) for view in _each(database, text) if is_wanted(view))})
        return
    call_log = _read(database, text)
    calls = [view for view in call_log.calls if is_wanted(view)]
    if calls:
        print_lines(call_table(calls, call_log.shared, workspaces=call_log.workspaces))
        if call_log.named is not None:
            print_lines(format_call(call_log.named))
    else:
        print_lines(["No calls." if status is None and tool is None else "No such calls."])


def call_json(view: CallView) -> dict[str, Any]:
    """A call in the shape others script against; `answered_by` where somebody answered its question."""
    answered = {} if view.answer is None else {"answered_by": view.answer.by, "answered_at": view.answer.at}
    return {"thread_id": view.thread_id, **view.record, **answered}


def call_name(thread_id: str, call_id: str, shared: frozenset[str]) -> str:
    """How commands name a call: its id, or THREAD:CALL where several threads have that id."""
    return f"{thread_id}:{call_id}" if call_id in shared else call_id


def call_table(
    calls: Sequence[CallView],
    shared: frozenset[str],
    *,
    workspaces: Mapping[str, str] | None = None,
    indent: int = 0,
) -> Iterator[str]:
    """The calls, one a line, with ids that commands accept.

    With the workspaces of their threads the threads are told too, and where there are several, the workspaces.
    """
    has_threads = workspaces is not None
    places = {view.thread_id: (workspaces or {}).get(view.thread_id, "") for view in calls}
    has_places = len(set(places.values())) > 1
    short_thread = id_shortener(view.thread_id for view in calls)
    short_call = id_shortener(view.record["call_id"] for view in calls)

    def row(view: CallView) -> tuple[str, ...]:
        thread, call_id = short_thread(view.thread_id), view.record["call_id"]
        name = call_name(thread, call_id, shared) if call_id in shared else short_call(call_id)
        place = (places[view.thread_id],) if has_places else ()
        return (*((thread,) if has_threads else ()), name, *_columns(view), *place, _about(view))

    place_heading = ("WORKSPACE",) if has_places else ()
    headings = ("CALL", "STATUS", "RISK", "TOOL", "TRY", "WHEN", *place_heading, "ABOUT")
    threads = ("THREAD",) if has_threads else ()
    rows = [row(view) for view in calls]
    return format_table((*threads, *headings), rows, place="WORKSPACE", leading=len(threads) + 2, indent=indent)


def _columns(view: CallView) -> tuple[str, ...]:
    record = view.record
    return (
        "left behind" if record.get("abandoned") else record["status"],
        record.get("risk", "-"),
        record["tool_name"],
        str(record.get("attempt", 1)),
        format_time(record.get("ended_at") or record.get("started_at") or record.get("asked_at")),
    )


def _each(database: Path, text: str | None) -> Iterator[CallView]:
    """The calls that are meant, whole: a long ledger with its results does not fit into memory."""
    try:
        with Reader.open(database) as reader:
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


def _read(database: Path, text: str | None) -> _Ledger:
    try:
        with Reader.open(database) as reader:
            shared = reader.shared_call_ids()
            if text is None:
                return _Ledger(reader.calls(brief=True), shared, reader.workspaces())
            target = reader.resolve(text)
            if target.kind == "call":
                named = reader.call(target.thread_id, target.id)
                return _Ledger([named], shared, named=named)
            return _Ledger(reader.calls(target.thread_id, brief=True), shared)
    except NothingYet:
        if text is not None:
            raise
        return _Ledger()


def _about(view: CallView) -> str:
    record = view.record
    display = record.get("display")
    about = _with_command(record, display) if display else record["tool_name"]
    if record.get("outside_sandbox"):
        about += " (outside the sandbox)"
    if view.answer is not None and record["status"] in ("awaiting_approval", "interrupted"):
        return f"{about} ({view.answer.kind} by {view.answer.by}, not taken in yet)"
    why = record.get("error_msg") or (
        record.get("reason") if record["status"] in ("cancelled", "interrupted") else ""
    )
    return f"{about} ({why})" if why and not about.endswith(why) else about


def _with_command(record: Mapping[str, Any], display: str) -> str:
    """What a command came to is told behind it: alone it says nothing of what ran."""
    command = (record.get("arguments") or {}).get("command")
    is_over = record["status"] in ("success", "error")
    if record["tool_name"] != "bash" or not is_over or not isinstance(command, str) or display[:1] == "$":
        return display
    return f"$ {truncate(' '.join(command.split()), _MOST_OF_COMMAND)}: {display}"
