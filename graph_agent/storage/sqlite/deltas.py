"""Delta channels and branches, derived from the stored checkpoints alone.

A delta channel depends on its writes along the line of ancestors, back to the nearest stored value. A branch
begins with a checkpoint that is no descendant of the head: an older checkpoint was resumed. It shows the rows
of the transcript up to where it left the branch before.
"""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from graph_agent.storage.decoder import Decoder

__all__ = ["NEWEST_SHOWN", "VISIBLE", "ancestors", "begin_branch", "count_turns", "delta_history"]

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
    connection: sqlite3.Connection, key: tuple[str, str, str], decoder: Decoder
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
            yield ancestor, decoder.checkpoint(kind, content).get("channel_values") or {}


def delta_history(
    connection: sqlite3.Connection, key: tuple[str, str, str], channels: Sequence[str], decoder: Decoder
) -> dict[str, dict[str, Any]]:
    """Per channel its `writes`, oldest first, and its `seed` where an ancestor holds a value of it.

    Writes stored on the checkpoint itself belong to the next step and are left out. Within one checkpoint they come
    in the order of task path, task and index, which is the one the running graph applied them in.
    """
    lines: dict[str, list[str]] = {channel: [] for channel in channels}
    seeds: dict[str, Any] = {}
    for checkpoint_id, values in ancestors(connection, key, decoder):
        sought = [channel for channel in channels if channel not in seeds]
        if not sought:
            break
        for channel in sought:
            lines[channel].append(checkpoint_id)
        seeds.update({channel: values[channel] for channel in sought if channel in values})
    return {
        channel: {"writes": _writes(connection, key, channel, line, decoder)}
        | ({"seed": seeds[channel]} if channel in seeds else {})
        for channel, line in lines.items()
    }


def _writes(
    connection: sqlite3.Connection, key: tuple[str, str, str], channel: str, line: Sequence[str], decoder: Decoder
) -> list[tuple[str, str, Any]]:
    """What was written to the channel on a line of checkpoints, given nearest first."""
    by_checkpoint: dict[str, list[tuple[str, str, Any]]] = {}
    rows = connection.execute(_WRITES, (*key[:2], channel, json.dumps(line)))
    for checkpoint_id, task_id, kind, value in rows:
        by_checkpoint.setdefault(checkpoint_id, []).append((task_id, channel, decoder.write(channel, kind, value)))
    return [write for checkpoint_id in reversed(line) for write in by_checkpoint.get(checkpoint_id, ())]


VISIBLE = """
WITH RECURSIVE line (branch, upto) AS (
    SELECT branch, 9223372036854775807 FROM threads WHERE thread_id = :thread_id
    UNION ALL
    SELECT b.parent_branch, min(b.from_seq, line.upto) FROM line JOIN branches b
    ON b.thread_id = :thread_id AND b.branch = line.branch
)
"""
"""Opens a statement: `line` has the thread's branch and those it came from, each with the last row shown of it."""

NEWEST_SHOWN = """
SELECT branch, seq FROM transcript WHERE thread_id = :thread_id AND checkpoint_id IN (SELECT id FROM line)
UNION ALL
SELECT parent_branch, from_seq FROM branches WHERE thread_id = :thread_id AND checkpoint_id IN (SELECT id FROM line)
UNION ALL
SELECT branch, seq FROM prune_points WHERE thread_id = :thread_id AND checkpoint_id IN (SELECT id FROM line)
ORDER BY 2 DESC LIMIT 1
"""
"""Ends a statement whose `line` has ids of checkpoints: the branch and the last row the newest one shows."""

# A copy has the parent of the checkpoint that it copies. What that one applied counts too: its lower step
# distinguishes it from other children of the parent. An earlier branch on the line counts with what it showed when
# it began.
_BRANCH_POINT = f"""
WITH RECURSIVE line (id) AS (
    SELECT checkpoint_id FROM checkpoints
    WHERE thread_id = :thread_id AND checkpoint_ns = '' AND parent_checkpoint_id IS :parent_id
        AND checkpoint_id < :checkpoint_id AND json_extract(CAST(metadata AS TEXT), '$.step') < :step
    UNION SELECT :parent_id
    UNION SELECT c.parent_checkpoint_id FROM line JOIN checkpoints c
    ON c.thread_id = :thread_id AND c.checkpoint_ns = '' AND c.checkpoint_id = line.id
)
{NEWEST_SHOWN}"""  # noqa: S608 - names only
_BEGIN = """
INSERT INTO branches (thread_id, branch, parent_branch, from_seq, checkpoint_id, at)
SELECT :thread_id, coalesce(max(branch), 0) + 1, :parent_branch, :from_seq, :checkpoint_id, :at
FROM branches WHERE thread_id = :thread_id
"""
_ENTER = """
UPDATE threads SET branch = (SELECT max(branch) FROM branches WHERE thread_id = :thread_id)
WHERE thread_id = :thread_id
"""
_COUNT_TURNS = f"""
UPDATE threads SET turns = ({VISIBLE} SELECT count(*) FROM transcript t JOIN line ON t.branch = line.branch
    AND t.seq <= line.upto WHERE t.thread_id = :thread_id AND t.role = 'user')
WHERE thread_id = :thread_id
"""  # noqa: S608 - names only


def begin_branch(
    connection: sqlite3.Connection, place: tuple[str, str, str], parent_id: str | None, step: int
) -> None:
    """Begin a branch with the checkpoint of `place`: thread, checkpoint and time."""
    thread_id, checkpoint_id, at = place
    named = {"thread_id": thread_id, "checkpoint_id": checkpoint_id, "at": at, "parent_id": parent_id, "step": step}
    parent_branch, from_seq = connection.execute(_BRANCH_POINT, named).fetchone() or (0, 0)
    connection.execute(_BEGIN, {**named, "parent_branch": parent_branch, "from_seq": from_seq})
    connection.execute(_ENTER, named)
    count_turns(connection, thread_id)


def count_turns(connection: sqlite3.Connection, thread_id: str) -> None:
    """Count the turns that the thread shows."""
    connection.execute(_COUNT_TURNS, {"thread_id": thread_id})
