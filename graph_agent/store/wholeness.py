"""Which checkpoints are whole: readable, and with all that their state rests on. For databases that lost something.

A state that lacks a step in the middle looks sound, and tells the model what never happened: it is better gone.
"""

import json
import sqlite3
from collections.abc import Mapping
from typing import Any, NamedTuple

from graph_agent.errors import DamagedDatabase
from graph_agent.store.deltas import Loads
from graph_agent.store.serde import StrictSerializer

__all__ = ["drop_what_is_not_whole"]

_DELTAS = ("messages", "calls")
_ALL = """
SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata FROM checkpoints
ORDER BY rowid
"""
_WRITTEN = """
SELECT channel, type, value FROM writes WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?
"""
_DROP = (
    "DELETE FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?",
    "DELETE FROM writes WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?",
)

Key = tuple[str, str, str]


class _Whole(NamedTuple):
    versions: Mapping[str, Any]
    written: frozenset[str] | None
    """The channels that were written at it; None where a write cannot be read."""


def drop_what_is_not_whole(connection: sqlite3.Connection) -> dict[str, int]:
    """Take away the checkpoints whose state cannot be told any more; how many, by thread."""
    loads = StrictSerializer().loads_typed
    whole: dict[Key, _Whole] = {}
    dropped: dict[str, int] = {}
    for thread_id, namespace, checkpoint_id, parent_id, *stored in connection.execute(_ALL).fetchall():
        key = (thread_id, namespace, checkpoint_id)
        parent = whole.get((thread_id, namespace, parent_id or ""))
        versions = _read(stored, parent, loads, is_first=parent_id is None)
        if versions is None:
            dropped[thread_id] = dropped.get(thread_id, 0) + 1
            for statement in _DROP:
                connection.execute(statement, key)
        else:
            whole[key] = _Whole(versions, _written(connection, key, loads))
    return dropped


def _read(stored: list[Any], parent: _Whole | None, loads: Loads, *, is_first: bool) -> Mapping[str, Any] | None:
    """The versions of its channels; None where it is not whole."""
    kind, content, metadata = stored
    try:
        checkpoint = loads((kind, content))
        json.loads(metadata or b"{}")
        versions: Mapping[str, Any] = checkpoint.get("channel_versions") or {}
        own = checkpoint.get("channel_values") or {}
    except (DamagedDatabase, ValueError, AttributeError):
        return None
    rested_on = [name for name in _DELTAS if name in versions and name not in own]
    if is_first or all(_is_told(name, versions, parent) for name in rested_on):
        return versions
    return None


def _is_told(channel: str, versions: Mapping[str, Any], parent: _Whole | None) -> bool:
    """Whether the parent is whole, and has the writes that changed the channel since."""
    if parent is None or parent.written is None:
        return False
    return versions[channel] == parent.versions.get(channel) or channel in parent.written


def _written(connection: sqlite3.Connection, key: Key, loads: Loads) -> frozenset[str] | None:
    channels = set()
    try:
        for channel, kind, value in connection.execute(_WRITTEN, key):
            loads((kind, value))
            channels.add(channel)
    except DamagedDatabase:
        return None
    return frozenset(channels)
