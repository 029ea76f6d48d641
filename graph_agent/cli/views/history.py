"""`history`: the checkpoints of a thread, as a table or as JSON."""

from collections.abc import Callable
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

from graph_agent.cli.views.counting import counted
from graph_agent.cli.views.place import reading
from graph_agent.cli.views.screen import local_time, print_json, print_lines
from graph_agent.cli.views.table import short_ids, table
from graph_agent.inspect import HistoryEntry

__all__ = ["show_history"]

_WITHOUT_NODE = {"input": "(input)", "loop": "START", "fork": "(fork)", "update": "(update)"}
"""What made a checkpoint that no node made."""


def show_history(
    database: Path, text: str, workspace: str | None, *, last: int | None = None, as_json: bool
) -> None:
    """Print the checkpoints of the thread that the text means; the `last` so many, where that is given."""
    with reading(database) as reader:
        thread_id = reader.resolve(text, workspace).thread_id
        entries = reader.history(thread_id)
    if as_json:
        print_json({"thread_id": thread_id, "checkpoints": [asdict(entry) for entry in entries[:last]]})
        return
    short = short_ids(entry.checkpoint_id for entry in entries)
    short_call = short_ids(call_id for entry in entries for call_id in entry.calls)
    is_one_line = all(new.parent_id in (old.checkpoint_id, None) for new, old in pairwise(entries))
    origin = () if is_one_line else ("FROM",)
    head = ("CHECKPOINT", *origin, "WHEN", "STEP", "NODE", "CALLS", "CHANGED")
    print_lines(
        table(head, [_row(entry, short, short_call, has_origin=not is_one_line) for entry in entries[:last]])
    )
    if last is not None and last < len(entries):
        print_lines([f"… {counted(len(entries) - last, 'earlier one')}"])


def _row(
    entry: HistoryEntry, short: Callable[[str], str], short_call: Callable[[str], str], *, has_origin: bool
) -> tuple[str, ...]:
    origin = short(entry.parent_id) if entry.parent_id else "-"
    return (
        f"{short(entry.checkpoint_id)}{' *' if entry.is_head else ''}",
        *((origin,) if has_origin else ()),
        local_time(entry.created_at),
        "" if entry.step is None else str(entry.step),
        entry.node or _WITHOUT_NODE.get(entry.source, "-"),
        ", ".join(map(short_call, entry.calls)) or "-",
        ", ".join(entry.changed),
    )
