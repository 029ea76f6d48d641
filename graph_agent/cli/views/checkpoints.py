"""`history` lists the checkpoints of a thread; `diff` compares the state of two."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.format import format_count, open_reader
from graph_agent.cli.views.table import (
    colorize,
    format_table,
    format_time,
    id_shortener,
    line_width,
    print_json,
    print_lines,
    truncate,
)
from graph_agent.inspect import Change, HistoryEntry, Reader, diff_values, is_message, role_of
from graph_agent.ports.storage import plain_text

__all__ = ["show_difference", "show_history"]

_SOURCE_NAMES = {"input": "user message", "loop": "START", "fork": "fork", "update": "update"}
"""What the NODE column shows for checkpoints that no node wrote."""


def show_history(
    database: Path, text: str, workspace: str | None, *, last: int | None = None, as_json: bool
) -> None:
    """Print the checkpoints of a thread, newest first; only the newest `last` ones if given."""
    with open_reader(database) as reader:
        thread_id = reader.resolve(text, workspace).thread_id
        entries = reader.history(thread_id)
    if as_json:
        print_json({"thread_id": thread_id, "checkpoints": [asdict(entry) for entry in entries[:last]]})
        return
    print_lines(_history_table(entries, last))
    if last is not None and last < len(entries):
        print_lines([f"… {format_count(len(entries) - last, 'earlier checkpoint')}"])


def _history_table(entries: list[HistoryEntry], last: int | None) -> Iterator[str]:
    short = id_shortener(entry.checkpoint_id for entry in entries)
    short_call = id_shortener(call_id for entry in entries for call_id in entry.calls)
    has_branches = any(new.parent_id not in (old.checkpoint_id, None) for new, old in pairwise(entries))
    rows = [
        (
            f"{short(entry.checkpoint_id)}{' *' if entry.is_head else ''}",
            *((short(entry.parent_id) if entry.parent_id else "-",) if has_branches else ()),
            format_time(entry.created_at),
            "" if entry.step is None else str(entry.step),
            entry.node or _SOURCE_NAMES.get(entry.source, "-"),
            ", ".join(map(short_call, entry.calls)) or "-",
            ", ".join(entry.changed),
        )
        for entry in entries[:last]
    ]
    parent = ("PARENT",) if has_branches else ()
    return format_table(("CHECKPOINT", *parent, "WHEN", "STEP", "NODE", "CALLS", "CHANGED"), rows)


def show_difference(database: Path, old: str, new: str, workspace: str | None, *, as_json: bool) -> None:
    """Print the changes that lead from one state to the other."""
    with open_reader(database) as reader:
        before, after = (_read_values(reader, text, workspace) for text in (old, new))
    changes = diff_values(before, after)
    if as_json:
        print_json({"changes": [asdict(change) for change in changes]})
    else:
        print_lines(_change_lines(changes))


def _read_values(reader: Reader, text: str, workspace: str | None) -> dict[str, Any]:
    target = reader.resolve(text, workspace)
    found = reader.inspection(target.thread_id, target.id if target.kind == "checkpoint" else None)
    return dict(found.state.values)


def _change_lines(changes: list[Change]) -> Iterator[str]:
    if not changes:
        yield "No differences."
    for change in changes:
        if change.op != "added":
            yield _change_line("-", change.path, change.old)
        if change.op != "removed":
            yield _change_line("+", change.path, change.new)


def _change_line(mark: str, path: str, value: Any) -> str:
    text = _message_text(value) if is_message(value) else json.dumps(value, ensure_ascii=False)
    line = escape(f"{mark} {path}: {text}")
    width = line_width()
    return colorize(line if width is None else truncate(line, width), "success" if mark == "+" else "error")


def _message_text(message: dict[str, Any]) -> str:
    """Role, text and requested calls of a message; its other fields are in the JSON output."""
    calls = [
        f"→ {call.get('name')} {json.dumps(call.get('args'), ensure_ascii=False)}"
        for call in message.get("tool_calls") or []
    ]
    return " ".join(filter(None, (f"{role_of(message)}:", plain_text(message.get("content")), *calls)))
