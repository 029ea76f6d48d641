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
_PARTS = ("channel_values", "channel_versions", "versions_seen")
_ALL = """
SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, CAST(metadata AS BLOB)
FROM checkpoints
WHERE ?1 IS NULL OR thread_id = ?1 ORDER BY rowid
"""
_WRITTEN = """
SELECT channel, type, value FROM writes WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?
"""
_DROP = "DELETE FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
_DROP_WRITES = "DELETE FROM writes WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"

Key = tuple[str, str, str]


class _Complete(NamedTuple):
    versions: Mapping[str, Any]
    written: frozenset[str] | None
    """The channels that were written at it; None where a write cannot be read."""


def count_unreadable_values(connection: sqlite3.Connection) -> dict[str, int]:
    """How many checkpoints and writes cannot be read, by thread. SQLite finds nothing wrong with such a row."""
    decoder = MessageDecoder()
    found: Counter[str] = Counter()
    for thread_id, _, checkpoint_id, _, *stored in connection.execute(_ALL, (None,)):
        found[thread_id] += _content(checkpoint_id, stored, decoder) is None
    for thread_id, kind, value in connection.execute("SELECT thread_id, type, value FROM writes"):
        found[thread_id] += not _is_readable(kind, value, decoder)
    return {thread_id: count for thread_id, count in found.items() if count}


def drop_incomplete_checkpoints(connection: sqlite3.Connection, thread_id: str | None = None) -> dict[str, int]:
    """Delete the checkpoints whose state cannot be rebuilt, of one thread or of all; returns how many, by thread.

    The writes of an unfinished step that cannot be read are deleted too, and counted: the step runs again.
    """
    decoder = MessageDecoder()
    complete: dict[Key, _Complete] = {}
    dropped: Counter[str] = Counter()
    for thread, namespace, checkpoint_id, parent_id, *stored in connection.execute(_ALL, (thread_id,)).fetchall():
        key = (thread, namespace, checkpoint_id)
        parent = complete.get((thread, namespace, parent_id or ""))
        versions = _complete_versions(_content(checkpoint_id, stored, decoder), parent, is_first=parent_id is None)
        written = None if versions is None else _written(connection, key, decoder)
        if versions is None:
            connection.execute(_DROP, key)
        else:
            complete[key] = _Complete(versions, written)
        if written is None:
            dropped[thread] += 1
            connection.execute(_DROP_WRITES, key)
    return dict(dropped)


def _content(checkpoint_id: str, stored: list[Any], decoder: Decoder) -> Mapping[str, Any] | None:
    """A checkpoint; None where it cannot be read, or is no valid one."""
    kind, content, metadata = stored
    try:
        checkpoint = decoder.checkpoint(kind, content)
        about = json.loads(metadata or b"{}")
    except (DamagedDatabase, ValueError):
        return None
    is_sound = (
        isinstance(checkpoint, Mapping) and isinstance(about, Mapping) and checkpoint.get("id") == checkpoint_id
    )
    return checkpoint if is_sound and _has_its_shape(checkpoint) else None


def _has_its_shape(checkpoint: Mapping[str, Any]) -> bool:
    """Whether it has what LangGraph and every reader rely on."""
    values, versions, seen = (checkpoint.get(name) for name in _PARTS)
    if not (isinstance(values, Mapping) and isinstance(versions, Mapping) and isinstance(seen, Mapping)):
        return False
    return (
        isinstance(checkpoint.get("ts"), str)
        and isinstance(values.get("__pregel_tasks", []), list)
        and all(isinstance(one, Mapping) for one in seen.values())
    )


def _complete_versions(
    checkpoint: Mapping[str, Any] | None, parent: _Complete | None, *, is_first: bool
) -> Mapping[str, Any] | None:
    """The versions of its channels; None where it is incomplete."""
    if checkpoint is None:
        return None
    versions: Mapping[str, Any] = checkpoint["channel_versions"]
    rested_on = [name for name in _DELTAS if name in versions and name not in checkpoint["channel_values"]]
    if is_first or all(_has_writes(name, versions, parent) for name in rested_on):
        return versions
    return None


def _has_writes(channel: str, versions: Mapping[str, Any], parent: _Complete | None) -> bool:
    """Whether the parent is complete, and has the writes that changed the channel since."""
    if parent is None or parent.written is None:
        return False
    return versions[channel] == parent.versions.get(channel) or channel in parent.written


def _written(connection: sqlite3.Connection, key: Key, decoder: Decoder) -> frozenset[str] | None:
    rows = connection.execute(_WRITTEN, key).fetchall()
    if all(_is_readable(kind, value, decoder) for _, kind, value in rows):
        return frozenset(channel for channel, _, _ in rows)
    return None


def _is_readable(kind: str, value: bytes, decoder: Decoder) -> bool:
    try:
        decoder.value(kind, value)
    except DamagedDatabase:
        return False
    return True
