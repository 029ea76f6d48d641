"""`inspect`: the state of the graph at a checkpoint, as JSON, as text, or one piece of it."""

import json
import signal
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, get_args

from graph_agent.cli.checklist import checklist
from graph_agent.cli.escape import escape
from graph_agent.cli.views.calls import call_json, call_table
from graph_agent.cli.views.counting import held_back
from graph_agent.cli.views.messages import message_lines
from graph_agent.cli.views.place import reading
from graph_agent.cli.views.screen import clipped, colored, line_width, local_time, print_json, print_lines
from graph_agent.cli.views.table import labelled
from graph_agent.cli.views.usage import usage_text
from graph_agent.cli.views.watching import Watch, watch
from graph_agent.errors import UsageError
from graph_agent.inspect import Inspection, ThreadStatus, are_messages, role_of
from graph_agent.ports.spending import told_usage

__all__ = ["inspect_state", "piece_of", "watch_state"]

_LAST_MESSAGES = 6
_INDENT = 2
_OWN_SECTIONS = ("messages", "calls", "usage", "todo")


def inspect_state(
    database: Path, text: str, workspace: str | None, *, path: str | None, as_json: bool, full: bool
) -> None:
    """Print the state of a checkpoint, or the piece of it under a dotted path."""
    with reading(database) as reader:
        target = reader.resolve(text, workspace)
        found = reader.inspection(target.thread_id, target.id if target.kind == "checkpoint" else None)
        shared = reader.shared_call_ids()
    whole = _inspection_json(found)
    if path is not None:
        _print_piece(piece_of(whole, path), as_json=as_json)
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


def piece_of(whole: Mapping[str, Any], path: str) -> Any:
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
    yield from labelled(
        {
            "thread": state.thread_id,
            "checkpoint": f"{state.checkpoint_id}{'' if state.is_head else ' (not the newest)'}",
            "created": f"{local_time(state.created_at)}, step {state.metadata.get('step')}",
            "status": found.status,
            "next": ", ".join(state.next) or "nothing",
            "also in": ", ".join(found.roots),
            "usage": usage_text(usage) if (usage := _usage(found)) else "",
            "within": ", ".join(found.threads_within),
        }
    )
    yield from _section("tasks", _task_lines(found, full=full))
    yield from _section("pending writes", _write_lines(found, full=full))
    yield from _section("calls", call_table(found.calls, shared, indent=_INDENT) if found.calls else iter(()))
    yield from _section("in the background", _shell_lines(found))
    yield from _section("todo", iter(checklist(todo)))
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
            yield colored(title, "heading")
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
        yield held_back(left_out, "earlier message")
    for message in messages[left_out:]:
        yield from message_lines(role_of(message), message, full=full)


def _json(value: Any) -> str:
    return escape(json.dumps(value, ensure_ascii=False, default=str))


def _cut(line: str) -> str:
    return clipped(line, (line_width() or 160) - _INDENT)
