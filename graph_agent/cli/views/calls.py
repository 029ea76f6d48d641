"""`calls`: the call log as a table and as JSON, and one call in full."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graph_agent.app.reader import read_database
from graph_agent.calls import outcome_of
from graph_agent.cli.views.table import (
    format_columns,
    format_time,
    id_shortener,
    line_width,
    print_json_lists,
    print_lines,
    truncate,
)
from graph_agent.errors import NothingYet, UsageError
from graph_agent.inspect import CALL_WORDS, AttemptView, CallView, answer_words, call_end, call_name
from graph_agent.wording import escape, format_age

__all__ = [
    "call_json",
    "call_table",
    "format_block",
    "format_call",
    "list_calls",
]


_MAX_COMMAND_WIDTH = 60


def list_calls(
    database: Path,
    text: str | None,
    *,
    status: str | None,
    tool: str | None,
    is_verbose: bool = False,
    as_json: bool,
) -> None:
    """Print the calls of one thread or of all. If `text` is a call id, that call is printed in full.

    Args:
        is_verbose: print times as date and time; so it does for one call.

    Raises:
        UsageError: the status is unknown.
        UnknownId: no id matches.
    """
    if status not in (None, *CALL_WORDS):
        raise UsageError(f"Unknown call status {status!r}. Choose one of: {', '.join(CALL_WORDS)}.")

    def matches(view: CallView) -> bool:
        return status in (None, view.record["status"], outcome_of(view.record)) and tool in (
            None,
            view.record["tool_name"],
        )

    if as_json:
        print_json_lists({}, {"calls": (call_json(view) for view in _iter_calls(database, text) if matches(view))})
        return
    log = _CallLog()
    try:
        log = _read(database, text)
    except NothingYet:
        if text is not None:
            raise
    calls = [view for view in log.calls if matches(view)]
    if not calls:
        print_lines(["No calls." if status is None and tool is None else "No matching calls."])
        return
    is_exact = is_verbose or log.is_one_call
    whole = "" if log.is_one_call else "graph-agent calls CALL"
    print_lines(call_table(calls, log.shared, workspaces=log.workspaces, is_exact=is_exact, whole=whole))
    if log.is_one_call:
        print_lines(format_call(calls[0]))


@dataclass(frozen=True, slots=True)
class _CallLog:
    calls: Sequence[CallView] = ()
    shared: frozenset[str] = frozenset()
    """Call ids that occur in several threads."""
    workspaces: Mapping[str, str] | None = None
    """By thread; None if the calls are of one thread, which was named."""
    is_one_call: bool = False
    """Whether the id named a call."""


def _read(database: Path, text: str | None) -> _CallLog:
    with read_database(database) as reader:
        shared = reader.shared_call_ids()
        if text is None:
            return _CallLog(reader.calls(brief=True), shared, reader.workspaces())
        target = reader.resolve(text)
        if target.kind == "call":
            return _CallLog([reader.call(target.thread_id, target.id)], shared, {}, is_one_call=True)
        return _CallLog(reader.calls(target.thread_id, brief=True), shared)


def _iter_calls(database: Path, text: str | None) -> Iterator[CallView]:
    """The calls one by one: a long call log with its results does not fit into memory."""
    try:
        with read_database(database) as reader:
            target = None if text is None else reader.resolve(text)
            if target is not None and target.kind == "call":
                yield reader.call(target.thread_id, target.id)
            else:
                yield from reader.iter_calls(target.thread_id if target else None)
    except NothingYet:
        if text is not None:
            raise


def call_json(view: CallView) -> dict[str, Any]:
    """A call in the JSON shape of `calls`; `answered_by` and `answered_at` if it was answered.

    `reverted` if a rewind reverted all that ran of it. A call that was asked for by its id has `attempts`.
    """
    answered = {} if view.answer is None else {"answered_by": view.answer.by, "answered_at": view.answer.at}
    attempts = {"attempts": [asdict(one) for one in view.attempts]} if view.attempts else {}
    reverted = {"reverted": True} if view.is_reverted else {}
    return {"thread_id": view.thread_id, **view.record, **reverted, **answered, **attempts}


def format_call(view: CallView) -> Iterator[str]:
    """The arguments, result, error and diff of a call in full."""
    record = view.record
    texts = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in record["arguments"].items()
    }
    if record.get("risk_reason"):
        yield escape(f"  risk: {record.get('risk', '-')}, {record['risk_reason']}")
    if len(view.attempts) > 1 or any(one.recovery or one.is_reverted for one in view.attempts):
        yield from map(_attempt_line, view.attempts)
    details = {"error": record["error_msg"], "result": record["result"]}
    match record.get("metadata"):
        case {"diff": {"unified": str(diff)}}:
            details["change"] = diff
    for name, text in (*texts.items(), *((name, text) for name, text in details.items() if text)):
        lines = list(format_block(text.removesuffix("\n")))
        if len(lines) == 1:
            yield f"  {escape(name)}: {lines[0].removeprefix('  │ ')}"
        else:
            yield from (f"  {escape(name)}:", *lines)


def _attempt_line(attempt: AttemptView) -> str:
    times = " to ".join(format_time(at) for at in (attempt.started_at, attempt.ended_at) if at)
    answers = [answer for answer in (attempt.approval, attempt.recovery) if answer]
    decided = [f"{answer_words(answer)} at {format_time(answer.at)}" for answer in answers]
    reverted = "reverted by a rewind" if attempt.is_reverted else ""
    parts = [attempt.status.replace("_", " "), times, *decided, reverted]
    return escape(f"  attempt {attempt.attempt}: {', '.join(filter(None, parts))}")


def format_block(text: str) -> Iterator[str]:
    """Text of several lines, set off by a bar at the left."""
    yield from (f"  │ {line}" for line in escape(text, multiline=True).split("\n"))


def call_table(
    calls: Sequence[CallView],
    shared: frozenset[str],
    *,
    workspaces: Mapping[str, str] | None = None,
    indent: int = 0,
    is_exact: bool = False,
    whole: str = "",
) -> Iterator[str]:
    """The calls as a table, with ids that commands accept.

    Args:
        workspaces: workspace by thread; adds a column for the thread, and one for the workspaces if they differ.
        is_exact: times as date and time, instead of how long ago.
        whole: see `format_table`.
    """
    folders = {view.thread_id: (workspaces or {}).get(view.thread_id, "") for view in calls}
    short_thread = id_shortener(view.thread_id for view in calls)
    short_call = id_shortener(view.record["call_id"] for view in calls)

    def format_id(view: CallView) -> str:
        call_id = view.record["call_id"]
        is_shared = call_id in shared
        return call_name(short_thread(view.thread_id), call_id, shared) if is_shared else short_call(call_id)

    def format_status(view: CallView) -> str:
        is_abandoned = view.record.get("abandoned")
        return "abandoned" if is_abandoned else "reverted" if view.is_reverted else call_end(view.record).word

    columns: dict[str, Callable[[CallView], str]] = {
        "THREAD": lambda view: short_thread(view.thread_id),
        "CALL": format_id,
        "STATUS": format_status,
        "RISK": lambda view: view.record.get("risk", "-"),
        "TOOL": lambda view: view.record["tool_name"],
        "ATTEMPT": lambda view: str(view.record.get("attempt", 1)),
        "WHEN": lambda view: (format_time if is_exact else format_age)(_newest_time(view)),
        "WORKSPACE": lambda view: folders[view.thread_id],
        "SUMMARY": _summary,
    }
    if workspaces is None:
        del columns["THREAD"]
    if len(set(folders.values())) < 2:
        del columns["WORKSPACE"]
    if line_width() is not None and all(view.record.get("attempt", 1) == 1 for view in calls):
        del columns["ATTEMPT"]
    fixed = 2 if workspaces is None else 3
    layout = {"path_column": "WORKSPACE", "fixed_columns": fixed, "indent": indent, "whole": whole}
    return format_columns(calls, columns, **layout)


def _newest_time(view: CallView) -> str | None:
    record = view.record
    return record.get("ended_at") or record.get("started_at") or record.get("asked_at")


def _summary(view: CallView) -> str:
    """What the call did, and why it ended. The result of a command alone does not say what ran: it is added."""
    record = view.record
    status, tool = record["status"], record["tool_name"]
    summary = record.get("summary") or tool
    command = (record.get("arguments") or {}).get("command")
    has_result = tool == "bash" and status in ("success", "error") and record.get("summary")
    if has_result and isinstance(command, str) and not summary.startswith("$"):
        summary = f"$ {truncate(' '.join(command.split()), _MAX_COMMAND_WIDTH)}: {summary}"
    if record.get("outside_sandbox"):
        summary += " (outside the sandbox)"
    if view.answer is not None and status in ("awaiting_approval", "interrupted"):
        return f"{summary} ({answer_words(view.answer)}, not applied yet)"
    has_reason = status in ("cancelled", "interrupted")
    reason = record.get("error_msg") or (call_end(record).cause if has_reason else "")
    return f"{summary} ({reason})" if reason and not summary.endswith(reason) else summary
