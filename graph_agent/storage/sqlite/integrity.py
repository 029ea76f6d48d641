"""Finds checkpoints that are complete: readable, with everything that their state depends on.

A state that lacks a step in the middle looks valid and reports to the model what never happened: it is better
removed.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from graph_agent.errors import DamagedDatabase
from graph_agent.storage.decoder import Decoder
from graph_agent.storage.serializer import MessageDecoder

__all__ = ["count_unreadable_values", "drop_incomplete_checkpoints"]

_DELTAS = ("messages", "calls")
_ALL = """
SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, CAST(metadata AS BLOB)
FROM checkpoints
WHERE ?1 IS NULL OR thread_id = ?1 ORDER BY rowid
"""
_THERE = "thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
_WRITTEN = f"SELECT channel, type, value FROM writes WHERE {_THERE}"  # noqa: S608 - names only


class _Complete(NamedTuple):
    """A checkpoint that is complete."""

    versions: Mapping[str, Any]
    written: frozenset[str] | None
    """The channels that were written at it; None where a write cannot be read."""


def count_unreadable_values(connection: sqlite3.Connection) -> dict[str, int]:
    """How many checkpoints and writes cannot be read, by thread. SQLite finds nothing wrong with such a row."""
    decoder = MessageDecoder()
    found: Counter[str] = Counter()
    for thread_id, _, checkpoint_id, _, *stored in connection.execute(_ALL, (None,)):
        found[thread_id] += _checkpoint(checkpoint_id, stored, decoder) is None
    for thread_id, kind, value in connection.execute("SELECT thread_id, type, value FROM writes"):
        found[thread_id] += not _is_readable(kind, value, decoder)
    return {thread_id: count for thread_id, count in found.items() if count}


def drop_incomplete_checkpoints(connection: sqlite3.Connection, thread_id: str | None = None) -> dict[str, int]:
    """Delete the checkpoints whose state cannot be rebuilt, of one thread or of all; returns how many, by thread.

    The writes of an unfinished step that cannot be read are deleted too, and counted: the step runs again.
    """
    decoder = MessageDecoder()
    complete: dict[tuple[str, str, str], _Complete] = {}
    dropped: Counter[str] = Counter()
    for thread, namespace, checkpoint_id, parent_id, *stored in connection.execute(_ALL, (thread_id,)).fetchall():
        key = (thread, namespace, checkpoint_id)
        parent = complete.get((thread, namespace, parent_id or ""))
        checkpoint = _checkpoint(checkpoint_id, stored, decoder)
        written: frozenset[str] | None = None
        if checkpoint is None or not (parent_id is None or _has_its_deltas(checkpoint, parent)):
            connection.execute(f"DELETE FROM checkpoints WHERE {_THERE}", key)  # noqa: S608 - names only
        else:
            rows = connection.execute(_WRITTEN, key).fetchall()
            if all(_is_readable(kind, value, decoder) for _, kind, value in rows):
                written = frozenset(channel for channel, _, _ in rows)
            complete[key] = _Complete(checkpoint["channel_versions"], written)
        if written is None:
            dropped[thread] += 1
            connection.execute(f"DELETE FROM writes WHERE {_THERE}", key)  # noqa: S608 - names only
    return dict(dropped)


def _checkpoint(checkpoint_id: str, stored: list[Any], decoder: Decoder) -> Mapping[str, Any] | None:
    """A checkpoint with what LangGraph and every reader rely on; None where it cannot be read or is not valid."""
    kind, content, metadata = stored
    try:
        checkpoint = decoder.checkpoint(kind, content)
        about = json.loads(metadata or b"{}")
    except (DamagedDatabase, ValueError):
        return None
    if not (isinstance(checkpoint, Mapping) and isinstance(about, Mapping)):
        return None
    values, seen = checkpoint.get("channel_values"), checkpoint.get("versions_seen")
    is_sound = (
        checkpoint.get("id") == checkpoint_id
        and isinstance(checkpoint.get("ts"), str)
        and isinstance(checkpoint.get("channel_versions"), Mapping)
        and isinstance(values, Mapping)
        and isinstance(values.get("__pregel_tasks", []), list)
        and isinstance(seen, Mapping)
        and all(isinstance(one, Mapping) for one in seen.values())
    )
    return checkpoint if is_sound else None


def _has_its_deltas(checkpoint: Mapping[str, Any], parent: _Complete | None) -> bool:
    """Whether the parent is complete, and has the writes of each delta channel that changed since."""
    values, versions = checkpoint["channel_values"], checkpoint["channel_versions"]
    missing = [name for name in _DELTAS if name in versions and name not in values]
    return not missing or (
        parent is not None
        and parent.written is not None
        and all(versions[name] == parent.versions.get(name) or name in parent.written for name in missing)
    )


def _is_readable(kind: str, value: bytes, decoder: Decoder) -> bool:
    try:
        decoder.value(kind, value)
    except DamagedDatabase:
        return False
    return True
