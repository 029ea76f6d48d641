"""`history`: the checkpoints of a thread, as a table or as JSON."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from graph_agent.cli.views.screen import local_time, print_json, print_lines
from graph_agent.cli.views.table import short_ids, table
from graph_agent.inspect import HistoryEntry, Reader

__all__ = ["show_history"]


def show_history(database: Path, text: str, workspace: str | None, *, as_json: bool) -> None:
    """Print the checkpoints of the thread that the text means."""
    with Reader.open(database) as reader:
        thread_id = reader.resolve(text, workspace).thread_id
        entries = reader.history(thread_id)
    if as_json:
        print_json({"thread_id": thread_id, "checkpoints": [asdict(entry) for entry in entries]})
        return
    short = short_ids(entry.checkpoint_id for entry in entries)
    head = ("CHECKPOINT", "FROM", "WHEN", "STEP", "NODE", "CALLS", "CHANGED")
    print_lines(table(head, [_row(entry, short) for entry in entries]))


def _row(entry: HistoryEntry, short: Callable[[str], str]) -> tuple[str, ...]:
    return (
        f"{short(entry.checkpoint_id)}{' *' if entry.is_head else ''}",
        short(entry.parent_id) if entry.parent_id else "-",
        local_time(entry.created_at),
        "" if entry.step is None else str(entry.step),
        entry.node or "-",
        ", ".join(entry.calls) or "-",
        ", ".join(entry.changed),
    )
