"""`calls`: the ledger as a table and as JSON."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from graph_agent.calls import STATUSES
from graph_agent.cli.views.screen import local_time, print_json, print_lines
from graph_agent.cli.views.table import short_ids, table
from graph_agent.errors import NothingYet, UsageError
from graph_agent.inspect import CallView, Reader

__all__ = ["call_json", "call_table", "list_calls"]


def list_calls(database: Path, text: str | None, *, status: str | None, tool: str | None, as_json: bool) -> None:
    """Print the calls of one thread, or of all.

    Raises:
        UsageError: there is no such status.
        UnknownId: there is no such thread.
    """
    if status is not None and status not in STATUSES:
        raise UsageError(f"{status!r} is not a status of a call; use one of: {', '.join(STATUSES)}.")
    calls = [
        view
        for view in _read(database, text)
        if status in (None, view.record["status"]) and tool in (None, view.record["tool_name"])
    ]
    if as_json:
        print_json({"calls": [call_json(view) for view in calls]})
    elif calls:
        print_lines(call_table(calls, with_thread=True))
    else:
        print_lines(["No calls." if status is None and tool is None else "No such calls."])


def call_json(view: CallView) -> dict[str, Any]:
    """A call in the shape others script against; `answered_by` where somebody answered its question."""
    answered = {} if view.answer is None else {"answered_by": view.answer.by, "answered_at": view.answer.at}
    return {"thread_id": view.thread_id, **view.record, **answered}


def call_table(calls: Sequence[CallView], *, with_thread: bool) -> Iterator[str]:
    """The calls, one a line, with ids that commands accept."""
    shown_id = _call_ids(calls)
    short_thread = short_ids(view.thread_id for view in calls)
    headings = ("CALL", "STATUS", "RISK", "TOOL", "TRY", "WHEN", "ABOUT")
    rows = []
    for view in calls:
        record = view.record
        row = (
            shown_id(view),
            "left behind" if record.get("left_behind") else record["status"],
            record.get("risk", "-"),
            record["tool_name"],
            str(record.get("attempt", 1)),
            local_time(record.get("ended_at") or record.get("started_at") or record.get("asked_at")),
            _about(view),
        )
        rows.append((short_thread(view.thread_id), *row) if with_thread else row)
    return table(("THREAD", *headings) if with_thread else headings, rows)


def _read(database: Path, text: str | None) -> list[CallView]:
    try:
        with Reader.open(database) as reader:
            if text is None:
                return reader.calls()
            target = reader.resolve(text)
            if target.kind == "call":
                return [reader.call(target.thread_id, target.id)]
            return reader.calls(target.thread_id)
    except NothingYet:
        if text is not None:
            raise
        return []


def _call_ids(calls: Sequence[CallView]) -> Callable[[CallView], str]:
    count = Counter(view.record["call_id"] for view in calls)
    short = short_ids(count)

    def shown(view: CallView) -> str:
        call_id: str = view.record["call_id"]
        return f"{view.thread_id}:{call_id}" if count[call_id] > 1 else short(call_id)

    return shown


def _about(view: CallView) -> str:
    record = view.record
    about = record.get("display") or record["tool_name"]
    if view.answer is not None and record["status"] in ("awaiting_approval", "interrupted"):
        return f"{about} ({view.answer.kind} by {view.answer.by}, not taken in yet)"
    why = record.get("error_msg") or (
        record.get("reason") if record["status"] in ("cancelled", "interrupted") else ""
    )
    return f"{about} ({why})" if why else about
