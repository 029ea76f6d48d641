"""`inspect`, `history`, `diff` and `graph`: a state, all checkpoints, the diff of two, and where a thread is.

While `inspect --watch` waits, the database is closed between two reads and its file is polled from outside, so that
nothing is locked, the write-ahead log can be checkpointed, and the file can be replaced.
"""

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args

from graph_agent.app.reader import GraphView, build_graph, database_stamp, format_mermaid, read_database
from graph_agent.calls import FINAL
from graph_agent.cli.views.calls import call_json, call_table
from graph_agent.cli.views.format import format_message, format_omitted, format_todo, open_reader, without_echo
from graph_agent.cli.views.table import (
    colorize,
    format_columns,
    format_fields,
    format_table,
    format_time,
    id_shortener,
    line_width,
    print_json_line,
    print_lines,
    print_result,
    print_text,
    supports_cursor,
    truncate,
)
from graph_agent.errors import AgentError, UnknownId, UsageError
from graph_agent.inspect import (
    Change,
    HistoryEntry,
    Inspection,
    Lease,
    Reader,
    ThreadStatus,
    are_messages,
    diff_values,
    is_alive,
    is_message,
    role_of,
)
from graph_agent.ports.stored_text import plain_text
from graph_agent.ports.usage import format_usage, usage_report
from graph_agent.wording import escape, format_age, format_count

__all__ = [
    "find_value",
    "inspect_state",
    "read_graph",
    "read_inspection",
    "show_difference",
    "show_graph",
    "show_history",
    "watch_state",
]

GraphFormat = Literal["terminal", "mermaid"]

_POLL_SECONDS = 0.25
_SETTLED_SECONDS = 1.0
"""A file that changed more recently may have changed again within the resolution of its time stamp."""
_LAST_MESSAGES = 6
_INDENT = 2
_OWN_SECTIONS = ("messages", "calls", "usage", "todo")
_SOURCE_NAMES = {"input": "user message", "loop": "START", "fork": "fork", "update": "update"}
"""What the NODE column shows for checkpoints that no node wrote."""


def inspect_state(
    database: Path, text: str, workspace: str | None, *, path: str | None, as_json: bool, full: bool
) -> None:
    """Print the state of a checkpoint, or its value at a dotted path."""
    with open_reader(database) as reader:
        found = read_inspection(reader, text, workspace)
        shared = reader.shared_call_ids()
    if path is None:
        print_result(lambda: _state_json(found), _state_lines(found, shared, full=full), as_json=as_json)
        return
    value = find_value(_state_json(found), path)
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False, default=str)
    print_result(value, [escape(text, multiline=True)], as_json=as_json)


def read_inspection(reader: Reader, text: str, workspace: str | None) -> Inspection:
    """The state at the checkpoint that an id means; of a thread, at its newest one.

    Raises:
        UnknownId: no id matches, or the thread has no checkpoint.
    """
    target = reader.resolve(text, workspace)
    return reader.inspection(target.thread_id, target.id if target.kind == "checkpoint" else None)


def find_value(state: Mapping[str, Any], path: str) -> Any:
    """The value at a path like `messages.3.content`, which starts in the channel values or at the top.

    Raises:
        UsageError: there is none; the message says how far the path leads and what is there.
    """
    parts = path.split(".")
    value: Any = state["values"] if parts[0] not in state or parts[0] in state["values"] else state
    while parts:
        if isinstance(value, dict):
            # Keys may contain dots: the longest one that matches is meant.
            keys = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
            key = next((key for key in keys if key in value), None)
            if key is not None:
                value, parts = value[key], parts[key.count(".") + 1 :]
                continue
            there = f"the keys {', '.join(value)}" if value else "an empty object"
        elif isinstance(value, list):
            if parts[0].lstrip("-").isdecimal() and -len(value) <= int(parts[0]) < len(value):
                value, parts = value[int(parts[0])], parts[1:]
                continue
            there = f"a list of {len(value)}"
        else:
            there = "a plain value"
        raise UsageError(f"--path {path!r}: no {parts[0]!r} there, only {there}.")
    return value


def _state_json(found: Inspection) -> dict[str, Any]:
    state, calls = found.state, [call_json(view) for view in found.calls]
    return {
        "thread_id": state.thread_id,
        "checkpoint_id": state.checkpoint_id,
        "status": found.status,
        "next": list(state.next),
        "tasks": [{**asdict(task), "name": task.node} for task in state.tasks],
        "interrupts": [dict(item) for item in state.interrupts],
        "pending_writes": [asdict(write) for write in state.pending_writes],
        "calls": calls,
        "usage": _usage(found),
        "values": dict(state.values),
        "parent_id": state.parent_id,
        "created_at": state.created_at,
        "step": state.metadata.get("step"),
        "is_head": state.is_head,
        "add_dirs": list(found.roots),
        "threads_within": list(found.threads_within),
        "shells": [asdict(shell) for shell in found.shells],
        "pending_tool_calls": [call for call in calls if call["status"] not in FINAL],
    }


def _usage(found: Inspection) -> dict[str, Any]:
    used = {} if found.is_foreign else found.state.values.get("usage") or {}
    return usage_report(used) if used else {}


def _state_lines(found: Inspection, shared: frozenset[str], *, full: bool) -> Iterator[str]:
    state = found.state
    usage = _usage(found)
    yield from format_fields(
        {
            "thread": state.thread_id,
            "checkpoint": f"{state.checkpoint_id}{'' if state.is_head else ' (not the newest)'}",
            "created": f"{format_time(state.created_at)}, step {state.metadata.get('step')}",
            "status": found.status,
            "next": ", ".join(state.next) or "nothing",
            "also in": ", ".join(found.roots),
            "usage": format_usage(usage) if usage else "",
            "sub-agents": ", ".join(found.threads_within),
        }
    )
    conversations = _conversations(state.values)
    writes = (f"{escape(write.channel)} = {_to_json(write.value)}" for write in state.pending_writes)
    shells = (escape(f"{shell.shell_id}  pid {shell.pid}  $ {shell.command}") for shell in found.shells)
    sections: list[tuple[str, Iterable[str]]] = [
        ("tasks", _task_lines(found, full=full)),
        ("pending writes", _cut(writes, full=full)),
        ("calls", call_table(found.calls, shared, indent=_INDENT) if found.calls else ()),
        ("background shells", _cut(shells, full=False)),
        ("todo", format_todo(() if found.is_foreign else state.values.get("todo") or ())),
        ("values", _cut(_value_lines(found, hidden=conversations), full=full)),
    ]
    sections += [(escape(name), _conversation_lines(one, full=full)) for name, one in conversations.items()]
    for title, lines in sections:
        for number, line in enumerate(lines):
            if number == 0:
                yield ""
                yield colorize(title, "heading")
            yield f"{' ' * _INDENT}{line}"


def _cut(lines: Iterable[str], *, full: bool) -> Iterator[str]:
    width = (line_width() or 160) - _INDENT
    return (line if full else truncate(line, width) for line in lines)


def _task_lines(found: Inspection, *, full: bool) -> Iterator[str]:
    for task in found.state.tasks:
        yield escape(f"{task.node}  {task.status}{f'  {task.error}' if task.error else ''}")
        if task.node == "__start__" and isinstance(task.input, dict):
            for messages in _conversations(task.input).values():
                yield from (f"  {line}" for line in _conversation_lines(messages, full=full))
        yield from _cut((f"  asks {_to_json(item['value'])}" for item in task.interrupts), full=full)


def _value_lines(found: Inspection, *, hidden: Mapping[str, Any]) -> Iterator[str]:
    """The values that have no section of their own."""
    is_bypassed = any(view.record.get("rule") == "bypassPermissions" for view in found.calls)
    for name, value in found.state.values.items():
        if name not in hidden and (found.is_foreign or name not in _OWN_SECTIONS):
            is_noted = name == "mode" and is_bypassed
            note = " (calls ran in bypassPermissions, which is never stored)" if is_noted else ""
            yield f"{escape(name)} = {_to_json(value)}{note}"


def _conversations(values: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    return {name: value for name, value in values.items() if are_messages(value)}


def _conversation_lines(messages: list[dict[str, Any]], *, full: bool) -> Iterator[str]:
    omitted = 0 if full else max(len(messages) - _LAST_MESSAGES, 0)
    if omitted:
        yield format_omitted(omitted, "earlier message")
    for message in messages[omitted:]:
        yield from format_message(role_of(message), message, full=full)


def _to_json(value: Any) -> str:
    return escape(json.dumps(value, ensure_ascii=False, default=str))


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The state at one read, or why it could not be read."""

    found: Inspection | None
    shared: frozenset[str] = frozenset()
    holder: Lease | None = None
    error: str = ""
    is_deleted: bool = False


def watch_state(
    database: Path, text: str, workspace: str | None, *, until: str | None, as_json: bool, full: bool
) -> None:
    """Print the newest state of a thread on each change: until it has a status, stdout is closed, or q or Ctrl-C.

    Raises:
        UsageError: the status is unknown.
        UnknownId: no id matches, or the thread was deleted meanwhile.
        StorageError: the first read failed; later failures are printed on stderr.
    """
    if until not in (None, *get_args(ThreadStatus)):
        raise UsageError(f"Unknown --until {until!r}. Choose one of: {', '.join(get_args(ThreadStatus))}.")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Ends with 130 and without a message.
    with open_reader(database) as reader:
        thread_id = reader.resolve(text, workspace).thread_id
    shown: _Snapshot | None = None
    with without_echo() as leaves_within:
        while True:
            stamp = database_stamp(database)
            snapshot = _read_snapshot(database, thread_id)
            if snapshot.is_deleted:
                raise UnknownId(f"Thread {thread_id!r} was deleted.")
            if shown is None or (snapshot.found, snapshot.error) != (shown.found, shown.error):
                _print_snapshot(snapshot, as_json=as_json, full=full)
                shown = snapshot
            if snapshot.found is not None and snapshot.found.status == until:
                return
            if not _wait_for_change(database, stamp, snapshot, leaves_within):
                return


def _read_snapshot(database: Path, thread_id: str) -> _Snapshot:
    try:
        with read_database(database) as reader:
            try:
                holder = reader.thread(thread_id).holder
            except UnknownId:
                return _Snapshot(None, is_deleted=True)
            return _Snapshot(reader.inspection(thread_id), reader.shared_call_ids(), holder)
    except AgentError as error:
        return _Snapshot(None, error=str(error))


def _print_snapshot(snapshot: _Snapshot, *, as_json: bool, full: bool) -> None:
    """Print a snapshot; on a terminal it replaces the content of the screen, with as many lines as fit."""
    if snapshot.found is None:
        sys.stderr.write(f"graph-agent: {escape(snapshot.error)}\n")
    elif as_json:
        print_json_line(_state_json(snapshot.found))
    else:
        lines = list(_state_lines(snapshot.found, snapshot.shared, full=full))
        if supports_cursor():
            rows = _terminal_size().lines - 1
            if len(lines) > rows:
                lines[rows - 1 :] = [f"… {format_count(len(lines) - rows + 1, 'more line')}"]
            # Line wrap is off meanwhile: the terminal itself cuts long lines.
            sys.stdout.write("\x1b[?7l\x1b[H\x1b[2J")
            print_lines(lines)
            sys.stdout.write("\x1b[?7h")
        else:
            print_lines([f"--- {time.strftime('%H:%M:%S')} ---", *lines, ""])
    sys.stdout.flush()


def _wait_for_change(
    database: Path, stamp: tuple[Any, ...], snapshot: _Snapshot, leaves_within: Callable[[float], bool]
) -> bool:
    """Wait until the state may have changed; False if the person leaves, or nobody reads stdout any more."""
    size = _terminal_size()
    while True:
        if leaves_within(_POLL_SECONDS) or _is_stdout_closed():
            return False
        has_holder_died = snapshot.holder is not None and not is_alive(snapshot.holder)
        if database_stamp(database) != stamp or has_holder_died or _terminal_size() != size:
            return True
        if max((one[2] / 1e9 for one in stamp if one), default=0.0) > time.time() - _SETTLED_SECONDS:
            return True


def _terminal_size() -> os.terminal_size:
    import shutil

    return shutil.get_terminal_size()


def _is_stdout_closed() -> bool:
    poll = select.poll()
    try:
        poll.register(sys.stdout.fileno(), 0)
        return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
    except (OSError, ValueError):
        return False


def show_history(
    database: Path,
    text: str,
    workspace: str | None,
    *,
    last: int | None = None,
    is_verbose: bool = False,
    as_json: bool,
) -> None:
    """Print the checkpoints of a thread, newest first.

    Args:
        last: only so many of the newest ones.
        is_verbose: print times as date and time.
    """
    with open_reader(database) as reader:
        thread_id = reader.resolve(text, workspace).thread_id
        entries = reader.history(thread_id, last)
        earlier = 0 if last is None else reader.count_checkpoints(thread_id) - len(entries)
    short = id_shortener(entry.checkpoint_id for entry in entries)
    short_call = id_shortener(call_id for entry in entries for call_id in entry.calls)
    columns: dict[str, Callable[[HistoryEntry], str]] = {
        "CHECKPOINT": lambda entry: f"{short(entry.checkpoint_id)}{' *' if entry.is_head else ''}",
        "PARENT": lambda entry: short(entry.parent_id) if entry.parent_id else "-",
        "WHEN": lambda entry: (format_time if is_verbose else format_age)(entry.created_at),
        "STEP": lambda entry: "" if entry.step is None else str(entry.step),
        "NODE": lambda entry: entry.node or _SOURCE_NAMES.get(entry.source, "-"),
        "CALLS": lambda entry: ", ".join(map(short_call, entry.calls)) or "-",
        "CHANGED": lambda entry: ", ".join(entry.changed),
    }
    if all(new.parent_id in (old.checkpoint_id, None) for new, old in pairwise(entries)):
        del columns["PARENT"]  # Without branches, each checkpoint continues the one below it.
    result = {"thread_id": thread_id, "checkpoints": list(map(asdict, entries))}
    table = format_columns(entries, columns, whole="graph-agent inspect CHECKPOINT")
    print_result(result, table, as_json=as_json)
    if earlier and not as_json:
        print_lines([f"… {format_count(earlier, 'earlier checkpoint')}"])


def show_difference(database: Path, old: str, new: str, workspace: str | None, *, as_json: bool) -> None:
    """Print the changes that lead from one state to the other."""
    with open_reader(database) as reader:
        before, after = (dict(read_inspection(reader, text, workspace).state.values) for text in (old, new))
    changes = diff_values(before, after)
    lines = _difference_lines(changes) if changes else "No differences."
    print_result({"changes": list(map(asdict, changes))}, lines, as_json=as_json)


def _difference_lines(changes: Iterable[Change]) -> Iterator[str]:
    """Both sides of each change. Of a message: role, text and requested calls; the JSON output has all fields."""
    width = line_width()
    for change in changes:
        sides = (("-", "error", change.old, "added"), ("+", "success", change.new, "removed"))
        for mark, color, value, missing_in in sides:
            if change.op == missing_in:
                continue
            if is_message(value):
                calls = [
                    f"→ {call.get('name')} {json.dumps(call.get('args'), ensure_ascii=False)}"
                    for call in value.get("tool_calls") or []
                ]
                text = " ".join(filter(None, (f"{role_of(value)}:", plain_text(value.get("content")), *calls)))
            else:
                text = json.dumps(value, ensure_ascii=False)
            line = escape(f"{mark} {change.path}: {text}")
            yield colorize(line if width is None else truncate(line, width), color)


def show_graph(
    database: Path | None,
    text: str,
    workspace: str | None,
    *,
    format_name: str | None = None,
    output: Path | None = None,
    as_json: bool = False,
) -> None:
    """Print the graph, with the thread that `text` names if a database is given.

    Raises:
        UsageError: the format is unknown, the options exclude each other, or the output cannot be written.
    """
    if as_json and (format_name or output):
        raise UsageError("--json cannot be combined with --format or --output.")
    if format_name not in (None, *get_args(GraphFormat)):
        raise UsageError(f"Unknown --format {format_name!r}. Choose one of: {', '.join(get_args(GraphFormat))}.")
    graph = build_graph() if database is None else read_graph(database, text, workspace)
    is_mermaid_file = output is not None and output.suffix.lower() in (".mmd", ".mermaid")
    is_mermaid = format_name == "mermaid" or (format_name is None and is_mermaid_file)
    lines = format_mermaid(graph) if is_mermaid else _graph_lines(graph)
    if output is None:
        nodes, edges = ([one._asdict() for one in many] for many in (graph.nodes, graph.edges))
        print_result({**graph.facts, "nodes": nodes, "edges": edges}, lines, as_json=as_json)
        return
    try:
        output.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"Cannot write --output {str(output)!r}: {error.strerror}.") from error
    print_text(f"Wrote {output}.")


def read_graph(database: Path, text: str, workspace: str | None) -> GraphView:
    """The graph with the position and the visits of a thread at a checkpoint.

    Raises:
        UnknownId: no id matches, or the thread has no checkpoint.
    """
    with open_reader(database) as reader:
        found = read_inspection(reader, text, workspace)
        visits = reader.visits(found.state.thread_id, found.state.checkpoint_id)
        return build_graph(found, visits, is_foreign=reader.is_foreign)


def _graph_lines(graph: GraphView) -> Iterator[str]:
    facts, has_visits = graph.facts, graph.facts["thread_id"] is not None
    if has_visits:
        since = facts["since"]
        yield from format_fields(
            {
                "thread": facts["thread_id"],
                "checkpoint": f"{facts['checkpoint_id']}{'' if graph.is_head else ' (not the newest)'}",
                "status": facts["status"],
                "next": ", ".join(dict.fromkeys(facts["next"])) or "nothing",
                "visits": f"counted from checkpoint {since}; older ones were pruned" if since else "",
            }
        )
        yield ""
    yield colorize("nodes", "heading")
    for node in graph.nodes:
        count = f"  ×{node.visits}" if node.visits is not None else ""
        line = escape(f"{'> ' if node.is_current else '  '}{node.name}{count}")
        yield colorize(line, "running") if node.is_current else line
    yield ""
    visits = [(f"×{edge.visits}",) if has_visits else () for edge in graph.edges]
    rows = [
        (edge.source, edge.target, *count, " | ".join(edge.outcomes) or "-")
        for edge, count in zip(graph.edges, visits, strict=True)
    ]
    yield from format_table(("FROM", "TO", *(("VISITS",) if has_visits else ()), "OUTCOMES"), rows)
