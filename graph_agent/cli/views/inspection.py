"""`inspect`: the state of the graph at a checkpoint, as JSON, as text, or one piece of it.

`inspect --watch`: the state of a thread shown again each time it changes, until somebody has seen enough.

Between two looks the file is not open: it is seen from outside whether it has changed, so that nothing is locked,
the log can be taken into the database, and another file may take its place.
"""

import json
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, get_args

from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.calls import call_json, call_table
from graph_agent.cli.views.format import format_message, format_omitted, format_todo, format_usage, open_reader
from graph_agent.cli.views.table import (
    colorize,
    format_fields,
    format_time,
    line_width,
    print_json,
    print_json_line,
    print_lines,
    supports_cursor,
    truncate,
)
from graph_agent.errors import AgentError, UnknownId, UsageError
from graph_agent.inspect import Inspection, Lease, Reader, ThreadStatus, are_messages, is_alive, role_of
from graph_agent.ports.usage import told_usage

__all__ = ["Watch", "find_value", "inspect_state", "watch", "watch_state"]

_TICK_S = 0.25
_SETTLED_S = 1.0
"""A file that changed so lately may have changed again within the same tick of its clock."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What is watched, and how it is shown."""

    database: Path
    text: str
    """Thread, checkpoint or call; whatever it is, its thread's newest state is watched."""
    workspace: str | None
    until: str | None
    """The status that ends it."""
    as_data: Callable[[Inspection], Any] | None
    """Makes one line of JSON of each state; None: lines are shown."""
    as_lines: Callable[[Inspection, frozenset[str]], Iterator[str]]


@dataclass(frozen=True, slots=True)
class _Look:
    """One state as it was found, or why it could not be."""

    found: Inspection | None
    shared: frozenset[str] = frozenset()
    holder: Lease | None = None
    trouble: str = ""
    is_gone: bool = False
    """Whether the thread was deleted: there is nothing to wait for any more."""


def watch(order: Watch) -> None:
    """Show each new state; ends with the status asked for, when nobody reads any more, or by Ctrl-C.

    Raises:
        UnknownId: nothing fits the id, or the thread was deleted meanwhile.
        StorageError: the database cannot be read at the first look; later on that is only told.
    """
    with open_reader(order.database) as reader:
        thread_id = reader.resolve(order.text, order.workspace).thread_id
    shown: _Look | None = None
    while True:
        stamp = _stamp(order.database)
        look = _look(order.database, thread_id)
        if look.is_gone:
            raise UnknownId(f"thread {thread_id!r} was deleted meanwhile")
        if shown is None or _differs(look, shown):
            _show(look, order)
            shown = look
        if look.found is not None and look.found.status == order.until:
            return
        if not _changes(order.database, stamp, look):
            return


def _look(database: Path, thread_id: str) -> _Look:
    try:
        with Reader.open(database) as reader:
            try:
                holder = reader.thread(thread_id).holder
            except UnknownId:
                return _Look(None, is_gone=True)
            return _Look(reader.inspection(thread_id), reader.shared_call_ids(), holder)
    except AgentError as trouble:
        return _Look(None, trouble=str(trouble))


def _differs(look: _Look, shown: _Look) -> bool:
    return (look.found, look.trouble) != (shown.found, shown.trouble)


def _show(look: _Look, order: Watch) -> None:
    if look.found is None:
        sys.stderr.write(f"graph-agent: {escape(look.trouble)}\n")
    elif order.as_data is not None:
        print_json_line(order.as_data(look.found))
    elif supports_cursor():
        _redraw(list(order.as_lines(look.found, look.shared)))
    else:
        print_lines([f"--- {time.strftime('%H:%M:%S')} ---", *order.as_lines(look.found, look.shared), ""])
    sys.stdout.flush()


def _redraw(lines: Sequence[str]) -> None:
    """Over what stands on the screen; never more than fits, because what scrolls away is no picture."""
    rows = shutil.get_terminal_size().lines - 1
    kept = lines if len(lines) <= rows else [*lines[: rows - 1], f"… {len(lines) - rows + 1} more lines"]
    # Long lines are cut by the terminal itself, which knows best how wide they are.
    sys.stdout.write("\x1b[?7l\x1b[H\x1b[2J")
    print_lines(kept)
    sys.stdout.write("\x1b[?7h")


def _changes(database: Path, stamp: tuple[Any, ...], look: _Look) -> bool:
    """Wait until it is worth another look; False when nobody reads the output any more."""
    size = shutil.get_terminal_size()
    was_alive = look.holder is not None
    while True:
        time.sleep(_TICK_S)
        if _is_unheard():
            return False
        is_same_life = not was_alive or (look.holder is not None and is_alive(look.holder))
        if _stamp(database) != stamp or not is_same_life or shutil.get_terminal_size() != size:
            return True
        if _newest(stamp) > time.time() - _SETTLED_S:
            return True


def _stamp(database: Path) -> tuple[Any, ...]:
    """What tells from outside that a file or its log has changed, or that another has taken its place."""
    return tuple(_seen(path) for path in (database, database.with_name(f"{database.name}-wal")))


def _seen(path: Path) -> tuple[int, int, int] | None:
    try:
        seen = path.stat()
    except OSError:
        return None
    return seen.st_ino, seen.st_size, seen.st_mtime_ns


def _newest(stamp: tuple[Any, ...]) -> float:
    return max((seen[2] / 1e9 for seen in stamp if seen is not None), default=0.0)


def _is_unheard() -> bool:
    """Whether stdout leads to a pipe whose other end is closed."""
    poll = select.poll()
    try:
        poll.register(sys.stdout.fileno(), 0)
        return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
    except (OSError, ValueError):
        return False


_LAST_MESSAGES = 6
_INDENT = 2
_OWN_SECTIONS = ("messages", "calls", "usage", "todo")


def inspect_state(
    database: Path, text: str, workspace: str | None, *, path: str | None, as_json: bool, full: bool
) -> None:
    """Print the state of a checkpoint, or the piece of it under a dotted path."""
    with open_reader(database) as reader:
        target = reader.resolve(text, workspace)
        found = reader.inspection(target.thread_id, target.id if target.kind == "checkpoint" else None)
        shared = reader.shared_call_ids()
    whole = _inspection_json(found)
    if path is not None:
        _print_piece(find_value(whole, path), as_json=as_json)
    elif as_json:
        print_json(whole)
    else:
        print_lines(_inspection_lines(found, shared, full=full))


def watch_state(
    database: Path, text: str, workspace: str | None, *, until: str | None, as_json: bool, full: bool
) -> None:
    """Print the state of a thread again each time it changes."""
    if until is not None and until not in get_args(ThreadStatus):
        raise UsageError(f"--until {until!r} is no status; choose one of {', '.join(get_args(ThreadStatus))}.")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Ends with 130, and says nothing.
    as_data = _inspection_json if as_json else None
    watch(Watch(database, text, workspace, until, as_data, partial(_inspection_lines, full=full)))


def find_value(whole: Mapping[str, Any], path: str) -> Any:
    """What stands under a path like `messages.3.content`; it may begin in the values or at the top.

    Raises:
        UsageError: nothing does; the message says how far the path leads and what is there.
    """
    parts = path.split(".")
    root = whole["values"] if parts[0] not in whole or parts[0] in whole["values"] else whole
    return _descend(root, parts, path)


def _descend(value: Any, parts: list[str], path: str) -> Any:
    if not parts:
        return value
    if isinstance(value, dict):
        # Keys may hold dots themselves: the longest one that fits is meant.
        for length in range(len(parts), 0, -1):
            key = ".".join(parts[:length])
            if key in value:
                return _descend(value[key], parts[length:], path)
        there = ", ".join(value) or "nothing"
    elif isinstance(value, list):
        index = parts[0]
        if index.lstrip("-").isdecimal() and -len(value) <= int(index) < len(value):
            return _descend(value[int(index)], parts[1:], path)
        there = f"a list of {len(value)}"
    else:
        there = "a plain value"
    raise UsageError(f"--path {path!r} leads nowhere: there is no {parts[0]!r}; at that place is {there}.")


def _print_piece(piece: Any, *, as_json: bool) -> None:
    if as_json:
        print_json(piece)
        return
    text = piece if isinstance(piece, str) else json.dumps(piece, indent=2, ensure_ascii=False, default=str)
    print_lines([escape(text, multiline=True)])


def _inspection_json(found: Inspection) -> dict[str, Any]:
    state = found.state
    return {
        "thread_id": state.thread_id,
        "checkpoint_id": state.checkpoint_id,
        "status": found.status,
        "next": list(state.next),
        "tasks": [{**asdict(task), "name": task.node} for task in state.tasks],
        "interrupts": [dict(item) for item in state.interrupts],
        "pending_writes": [asdict(write) for write in state.pending_writes],
        "calls": [call_json(view) for view in found.calls],
        "usage": _usage(found),
        "values": dict(state.values),
        "parent_id": state.parent_id,
        "created_at": state.created_at,
        "step": state.metadata.get("step"),
        "is_head": state.is_head,
        "add_dirs": list(found.roots),
        "threads_within": list(found.threads_within),
        "shells": [asdict(shell) for shell in found.shells],
    }


def _inspection_lines(found: Inspection, shared: frozenset[str], *, full: bool) -> Iterator[str]:
    state = found.state
    values = state.values
    todo: list[dict[str, Any]] = [] if found.is_foreign else values.get("todo") or []
    yield from format_fields(
        {
            "thread": state.thread_id,
            "checkpoint": f"{state.checkpoint_id}{'' if state.is_head else ' (not the newest)'}",
            "created": f"{format_time(state.created_at)}, step {state.metadata.get('step')}",
            "status": found.status,
            "next": ", ".join(state.next) or "nothing",
            "also in": ", ".join(found.roots),
            "usage": format_usage(usage) if (usage := _usage(found)) else "",
            "within": ", ".join(found.threads_within),
        }
    )
    yield from _section("tasks", _task_lines(found, full=full))
    yield from _section("pending writes", _write_lines(found, full=full))
    yield from _section("calls", call_table(found.calls, shared, indent=_INDENT) if found.calls else iter(()))
    yield from _section("in the background", _shell_lines(found))
    yield from _section("todo", iter(format_todo(todo)))
    yield from _section("values", _value_lines(_other_values(found), _notes(found), full=full))
    for name, messages in _conversations(values).items():
        yield from _section(escape(name), _conversation_lines(messages, full=full))


def _usage(found: Inspection) -> dict[str, Any]:
    used = {} if found.is_foreign else found.state.values.get("usage") or {}
    return told_usage(used) if used else {}


def _conversations(values: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    return {name: value for name, value in values.items() if are_messages(value)}


def _other_values(found: Inspection) -> dict[str, Any]:
    """What is not shown in a section of its own."""
    shown = {*_conversations(found.state.values), *(() if found.is_foreign else _OWN_SECTIONS)}
    return {name: value for name, value in found.state.values.items() if name not in shown}


def _section(title: str, lines: Iterator[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if number == 0:
            yield ""
            yield colorize(title, "heading")
        yield f"{' ' * _INDENT}{line}"


def _task_lines(found: Inspection, *, full: bool) -> Iterator[str]:
    for task in found.state.tasks:
        yield escape(f"{task.node}  {task.status}{f'  {task.error}' if task.error else ''}")
        if task.node == "__start__" and isinstance(task.input, dict):
            for messages in _conversations(task.input).values():
                yield from (f"  {line}" for line in _conversation_lines(messages, full=full))
        for item in task.interrupts:
            line = f"  asks {_json(item['value'])}"
            yield line if full else _cut(line)


def _shell_lines(found: Inspection) -> Iterator[str]:
    for shell in found.shells:
        yield _cut(escape(f"{shell.shell_id}  pid {shell.pid}  $ {shell.command}"))


def _write_lines(found: Inspection, *, full: bool) -> Iterator[str]:
    for write in found.state.pending_writes:
        line = f"{escape(write.channel)} = {_json(write.value)}"
        yield line if full else _cut(line)


def _notes(found: Inspection) -> Mapping[str, str]:
    """What is to be said of a value, by its name, where it alone would mislead."""
    if any(view.record.get("rule") == "bypassPermissions" for view in found.calls):
        return {"mode": " (calls ran under bypassPermissions, which is never kept)"}
    return {}


def _value_lines(values: Mapping[str, Any], notes: Mapping[str, str], *, full: bool) -> Iterator[str]:
    for name, value in values.items():
        line = f"{escape(name)} = {_json(value)}{notes.get(name, '')}"
        yield line if full else _cut(line)


def _conversation_lines(messages: list[dict[str, Any]], *, full: bool) -> Iterator[str]:
    left_out = 0 if full else max(len(messages) - _LAST_MESSAGES, 0)
    if left_out:
        yield format_omitted(left_out, "earlier message")
    for message in messages[left_out:]:
        yield from format_message(role_of(message), message, full=full)


def _json(value: Any) -> str:
    return escape(json.dumps(value, ensure_ascii=False, default=str))


def _cut(line: str) -> str:
    return truncate(line, (line_width() or 160) - _INDENT)
