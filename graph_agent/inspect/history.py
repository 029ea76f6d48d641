"""The checkpoints of a thread as a list: when each was made, by which node, and what it changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graph_agent.inspect.database import ReadOnlyDatabase
from graph_agent.inspect.decode import decode, decode_checkpoint, decode_metadata
from graph_agent.inspect.planning import planned_nodes

__all__ = ["HistoryEntry", "read_history"]

_INTERNAL = ("branch:", "join:", "__")
"""Beginnings of the names of channels that steer the engine and are nobody's state."""


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One checkpoint."""

    checkpoint_id: str
    parent_id: str | None
    """None: the first one, or its parent was pruned."""
    created_at: str
    step: int | None
    node: str
    """The nodes that ran since its parent, joined by commas; empty for the checkpoint that takes in a message."""
    changed: tuple[str, ...]
    """The channels that were written since its parent."""
    calls: tuple[str, ...]
    """Ids of the calls whose records were written since its parent."""
    is_head: bool
    source: str = ""
    """How it came about: input took in a message, loop ran nodes, fork and update put it there from outside."""


def read_history(database: ReadOnlyDatabase, thread_id: str, head: str) -> list[HistoryEntry]:
    """Every checkpoint that still stands, newest first, those of branches that were left included.

    Raises:
        DamagedDatabase: what is stored cannot be decoded.
    """
    rows = database.rows(
        """SELECT checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata FROM checkpoints
        WHERE thread_id = ? AND checkpoint_ns = '' ORDER BY checkpoint_id""",
        (thread_id,),
    )
    written = {} if database.is_foreign else _calls_written(database, thread_id)
    decoded = {row[0]: decode_checkpoint(row[2], row[3]) for row in rows}
    entries = []
    for checkpoint_id, parent_id, _, _, metadata in rows:
        checkpoint = decoded[checkpoint_id]
        parent = decoded.get(parent_id) or {}
        known = decode_metadata(metadata)
        entries.append(
            HistoryEntry(
                checkpoint_id,
                parent_id,
                checkpoint.get("ts", ""),
                known.get("step"),
                ", ".join(planned_nodes(parent)) if known.get("source") == "loop" else "",
                _changed(checkpoint, parent),
                written.get(parent_id or "", ()),
                checkpoint_id == head,
                str(known.get("source") or ""),
            )
        )
    return entries[::-1]


def _changed(checkpoint: Mapping[str, Any], parent: Mapping[str, Any]) -> tuple[str, ...]:
    """The channels whose versions differ from the parent's, without the engine's own."""
    now, before = checkpoint.get("channel_versions") or {}, parent.get("channel_versions") or {}
    return tuple(
        name
        for name, version in sorted(now.items())
        if version != before.get(name) and not name.startswith(_INTERNAL)
    )


def _calls_written(database: ReadOnlyDatabase, thread_id: str) -> dict[str, tuple[str, ...]]:
    """Call ids by the checkpoint at which the write that names them was stored."""
    rows = database.rows(
        """SELECT checkpoint_id, type, value FROM writes
        WHERE thread_id = ? AND checkpoint_ns = '' AND channel = 'calls' ORDER BY checkpoint_id, task_path, idx""",
        (thread_id,),
    )
    named: dict[str, dict[str, None]] = {}
    for checkpoint_id, kind, value in rows:
        update = decode(kind, value)
        if isinstance(update, dict):
            ids = (key for key in update if not key.startswith("__"))
            named.setdefault(checkpoint_id, {}).update(dict.fromkeys(ids))
    return {checkpoint_id: tuple(ids) for checkpoint_id, ids in named.items()}
