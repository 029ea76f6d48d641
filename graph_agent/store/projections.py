"""Tables for people and plain tools, derived from checkpoints: list entry, transcript and ledger of a thread.

Written in the transaction of each checkpoint of the root graph, and rebuildable from what is stored there. What a
step wrote stands on the checkpoint it started from, so a checkpoint brings the writes of its parent; values that
came without writes (the first input, a fork) stand in the checkpoint itself. Odd values are passed over, never
raised on: an error here would come back with every checkpoint of the thread.
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage

from graph_agent.store.deltas import Loads
from graph_agent.store.ledger import fold_calls
from graph_agent.store.listing import next_nodes, outcome, timestamp
from graph_agent.store.transcript import fold_messages

__all__ = ["Projections", "StoredCheckpoint", "forget"]

_STEP = """
SELECT channel, type, value FROM writes
WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ? AND channel IN ('messages', 'calls')
ORDER BY task_path, task_id, idx
"""
_HEAD = """
UPDATE threads SET checkpoint_id = :checkpoint_id, next_nodes = :next_nodes, outcome = :outcome, updated_at = :at
WHERE thread_id = :thread_id AND (checkpoint_id IS NULL OR checkpoint_id <= :checkpoint_id)
"""
_LISTED = "INSERT OR IGNORE INTO threads (thread_id, created_at, updated_at) VALUES (:thread_id, :at, :at)"
_LOG = """
SELECT checkpoint_id, parent_checkpoint_id, type, checkpoint, json_extract(CAST(metadata AS TEXT), '$.source')
FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '' ORDER BY rowid
"""
_OF_A_THREAD = (
    "checkpoints",
    "writes",
    "threads",
    "transcript",
    "ledger",
    "journal",
    "decisions",
    "inbox",
    "file_states",
)


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """A checkpoint of the root graph, as it is being stored."""

    thread_id: str
    parent_id: str | None
    checkpoint: Mapping[str, Any]
    metadata: Mapping[str, Any]

    @property
    def brings_values(self) -> bool:
        """Whether it may hold channel values that no write tells of."""
        return self.parent_id is None or self.metadata.get("source") != "loop"


class Projections:
    """Folds checkpoints into the tables."""

    def __init__(self, loads: Loads, whole_value: Callable[[Any], Any]) -> None:
        self._loads = loads
        self._whole_value = whole_value

    def fold(self, connection: sqlite3.Connection, stored: StoredCheckpoint) -> None:
        """Bring the tables up to this checkpoint; folding one a second time changes nothing."""
        thread_id, checkpoint_id = stored.thread_id, str(stored.checkpoint["id"])
        at = timestamp(stored.checkpoint.get("ts"))
        head = {
            "thread_id": thread_id,
            "checkpoint_id": checkpoint_id,
            "next_nodes": next_nodes(stored.checkpoint),
            "outcome": outcome(stored.checkpoint),
            "at": at,
        }
        if not connection.execute(_HEAD, head).rowcount and connection.execute(_LISTED, head).rowcount:
            connection.execute(_HEAD, head)
        for channel, value in self._values(connection, stored):
            if channel == "messages":
                fold_messages(connection, (thread_id, checkpoint_id, at), _messages(value))
            elif isinstance(value, Mapping):
                fold_calls(connection, (thread_id, checkpoint_id, at), value)

    def rebuild(self, connection: sqlite3.Connection, thread_id: str) -> None:
        """Derive the tables again from the stored checkpoints; what the user set (title, workspace, mode) stays."""
        for table in ("transcript", "ledger"):
            connection.execute(f"DELETE FROM {table} WHERE thread_id = ?", (thread_id,))  # noqa: S608 - names only
        connection.execute(
            "UPDATE threads SET checkpoint_id = NULL, next_nodes = '[]', outcome = '', turns = 0 "
            "WHERE thread_id = ?",
            (thread_id,),
        )
        for _, parent_id, kind, content, source in connection.execute(_LOG, (thread_id,)).fetchall():
            checkpoint = self._loads((kind, content))
            self.fold(connection, StoredCheckpoint(thread_id, parent_id, checkpoint, {"source": source}))

    def _values(self, connection: sqlite3.Connection, stored: StoredCheckpoint) -> Iterator[tuple[str, Any]]:
        if stored.parent_id:
            rows = connection.execute(_STEP, (stored.thread_id, stored.parent_id)).fetchall()
            yield from ((channel, self._whole_value(self._loads((kind, value)))) for channel, kind, value in rows)
        if stored.brings_values:
            values = stored.checkpoint.get("channel_values") or {}
            yield from ((name, self._whole_value(values[name])) for name in ("messages", "calls") if name in values)


def forget(connection: sqlite3.Connection, thread_id: str) -> None:
    """Delete every row of a thread, facts included. Its lease stays: a process may still hold the lock."""
    for table in _OF_A_THREAD:
        connection.execute(f"DELETE FROM {table} WHERE thread_id = ?", (thread_id,))  # noqa: S608 - names only


def _messages(value: Any) -> list[BaseMessage]:
    whole = value if isinstance(value, list | tuple) else [value]
    return [message for message in whole if isinstance(message, BaseMessage)]
