"""`history`: the checkpoints of a thread, as a table or as JSON.

`diff`: what differs between two checkpoints, as text or as JSON.
"""

import json
from collections.abc import Callable, Iterator
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

_WITHOUT_NODE = {"input": "(input)", "loop": "START", "fork": "(fork)", "update": "(update)"}
"""What made a checkpoint that no node made."""


def show_history(
    database: Path, text: str, workspace: str | None, *, last: int | None = None, as_json: bool
) -> None:
    """Print the checkpoints of the thread that the text means; the `last` so many, where that is given."""
    with open_reader(database) as reader:
        thread_id = reader.resolve(text, workspace).thread_id
        entries = reader.history(thread_id)
    if as_json:
        print_json({"thread_id": thread_id, "checkpoints": [asdict(entry) for entry in entries[:last]]})
        return
    short = id_shortener(entry.checkpoint_id for entry in entries)
    short_call = id_shortener(call_id for entry in entries for call_id in entry.calls)
    is_one_line = all(new.parent_id in (old.checkpoint_id, None) for new, old in pairwise(entries))
    origin = () if is_one_line else ("FROM",)
    head = ("CHECKPOINT", *origin, "WHEN", "STEP", "NODE", "CALLS", "CHANGED")
    print_lines(
        format_table(head, [_row(entry, short, short_call, has_origin=not is_one_line) for entry in entries[:last]])
    )
    if last is not None and last < len(entries):
        print_lines([f"… {format_count(len(entries) - last, 'earlier one')}"])


def _row(
    entry: HistoryEntry, short: Callable[[str], str], short_call: Callable[[str], str], *, has_origin: bool
) -> tuple[str, ...]:
    origin = short(entry.parent_id) if entry.parent_id else "-"
    return (
        f"{short(entry.checkpoint_id)}{' *' if entry.is_head else ''}",
        *((origin,) if has_origin else ()),
        format_time(entry.created_at),
        "" if entry.step is None else str(entry.step),
        entry.node or _WITHOUT_NODE.get(entry.source, "-"),
        ", ".join(map(short_call, entry.calls)) or "-",
        ", ".join(entry.changed),
    )


def show_difference(database: Path, old: str, new: str, workspace: str | None, *, as_json: bool) -> None:
    """Print the changes that lead from one state to the other."""
    with open_reader(database) as reader:
        before, after = (_values(reader, text, workspace) for text in (old, new))
    changes = diff_values(before, after)
    if as_json:
        print_json({"changes": [asdict(change) for change in changes]})
    else:
        print_lines(_lines(changes))


def _values(reader: Reader, text: str, workspace: str | None) -> dict[str, Any]:
    target = reader.resolve(text, workspace)
    found = reader.inspection(target.thread_id, target.id if target.kind == "checkpoint" else None)
    return dict(found.state.values)


def _lines(changes: list[Change]) -> Iterator[str]:
    if not changes:
        yield "nothing differs"
    for change in changes:
        if change.op != "added":
            yield _line("-", change.path, change.old)
        if change.op != "removed":
            yield _line("+", change.path, change.new)


def _line(mark: str, path: str, value: Any) -> str:
    line = escape(f"{mark} {path}: {_said(value) if is_message(value) else _json(value)}")
    width = line_width()
    return colorize(line if width is None else truncate(line, width), "success" if mark == "+" else "error")


def _said(message: dict[str, Any]) -> str:
    """Who says what in a message, and which calls it asks for; its other fields are in the JSON."""
    calls = [f"→ {call.get('name')} {_json(call.get('args'))}" for call in message.get("tool_calls") or []]
    return " ".join(filter(None, (f"{role_of(message)}:", plain_text(message.get("content")), *calls)))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
