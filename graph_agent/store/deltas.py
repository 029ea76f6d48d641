"""What a delta channel rests on: its writes along the line of ancestors, back to the nearest stored value."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any

__all__ = ["Loads", "ancestors", "delta_history"]

Loads = Callable[[tuple[str, bytes]], Any]
"""Turns a type tag and bytes into the value."""

_LINE = """
WITH RECURSIVE line (id, parent, type, checkpoint) AS (
    SELECT checkpoint_id, parent_checkpoint_id, type, checkpoint FROM checkpoints
    WHERE thread_id = ?1 AND checkpoint_ns = ?2 AND checkpoint_id = ?3
    UNION ALL
    SELECT c.checkpoint_id, c.parent_checkpoint_id, c.type, c.checkpoint FROM line CROSS JOIN checkpoints c
    ON c.thread_id = ?1 AND c.checkpoint_ns = ?2 AND c.checkpoint_id = line.parent)
SELECT id, type, checkpoint FROM line
"""
_WRITES = """
SELECT checkpoint_id, task_id, type, value FROM writes
WHERE thread_id = ? AND checkpoint_ns = ? AND channel = ?
    AND checkpoint_id IN (SELECT value FROM json_each(?)) ORDER BY task_path, task_id, idx
"""


def ancestors(
    connection: sqlite3.Connection, key: tuple[str, str, str], loads: Loads
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Id and stored channel values of each ancestor, nearest first; the checkpoint itself is left out."""
    # One statement however long the line is; what is not asked for is not read. A checkpoint that was stored again
    # under one of its descendants makes the line a loop.
    walked: set[str] = set()
    for ancestor, kind, content in connection.execute(_LINE, key):
        if ancestor in walked:
            return
        walked.add(ancestor)
        if ancestor != key[2]:
            yield ancestor, loads((kind, content)).get("channel_values") or {}


def delta_history(
    connection: sqlite3.Connection, key: tuple[str, str, str], channels: Sequence[str], loads: Loads
) -> dict[str, dict[str, Any]]:
    """Per channel its `writes`, oldest first, and its `seed` where an ancestor holds a value of it.

    Writes stored on the checkpoint itself belong to the next step and are left out. Within one checkpoint they come
    in the order of task path, task and index, which is the one the running graph applied them in.
    """
    lines: dict[str, list[str]] = {channel: [] for channel in channels}
    seeds: dict[str, Any] = {}
    for checkpoint_id, values in ancestors(connection, key, loads):
        sought = [channel for channel in channels if channel not in seeds]
        if not sought:
            break
        for channel in sought:
            lines[channel].append(checkpoint_id)
        seeds.update({channel: values[channel] for channel in sought if channel in values})
    return {
        channel: {"writes": _writes(connection, key, channel, line, loads)}
        | ({"seed": seeds[channel]} if channel in seeds else {})
        for channel, line in lines.items()
    }


def _writes(
    connection: sqlite3.Connection, key: tuple[str, str, str], channel: str, line: Sequence[str], loads: Loads
) -> list[tuple[str, str, Any]]:
    """What was written to the channel on a line of checkpoints, given nearest first."""
    by_checkpoint: dict[str, list[tuple[str, str, Any]]] = {}
    rows = connection.execute(_WRITES, (*key[:2], channel, json.dumps(line)))
    for checkpoint_id, task_id, kind, value in rows:
        by_checkpoint.setdefault(checkpoint_id, []).append((task_id, channel, loads((kind, value))))
    return [write for checkpoint_id in reversed(line) for write in by_checkpoint.get(checkpoint_id, ())]
