"""Delta channels and branches, derived from the stored checkpoints alone.

A delta channel depends on its writes along the line of ancestors, back to the nearest stored value. A branch
begins with a checkpoint that is no descendant of the head: an older checkpoint was resumed. It shows the rows
of the transcript up to where it left the branch before.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from graph_agent.storage import Connection
from graph_agent.storage.decoder import Decoder
from graph_agent.storage.legacy_names import current_channel
from graph_agent.storage.sqlite.checkpoint_rows import (
    BrokenCheckpoint,
    Execute,
    Link,
    missing_writes,
    read_checkpoint,
    read_write,
)

__all__ = ["NEWEST_SHOWN", "VISIBLE", "begin_branch", "count_turns", "delta_history", "line", "pending_writes"]

_LINE = """
WITH RECURSIVE line (id, parent, type, checkpoint, metadata) AS (
    SELECT checkpoint_id, parent_checkpoint_id, type, checkpoint, CAST(metadata AS BLOB) FROM checkpoints
    WHERE thread_id = ?1 AND checkpoint_ns = ?2 AND checkpoint_id = ?3
    UNION ALL
    SELECT c.checkpoint_id, c.parent_checkpoint_id, c.type, c.checkpoint, CAST(c.metadata AS BLOB)
    FROM line CROSS JOIN checkpoints c
    ON c.thread_id = ?1 AND c.checkpoint_ns = ?2 AND c.checkpoint_id = line.parent)
SELECT id, parent, type, checkpoint, metadata FROM line
"""
_WRITES = """
SELECT checkpoint_id, task_id, task_path, idx, type, value FROM writes
WHERE thread_id = ? AND checkpoint_ns = ? AND channel = ?
    AND checkpoint_id IN (SELECT value FROM json_each(?)) ORDER BY task_path, task_id, idx
"""
_PENDING = """
SELECT task_id, channel, type, value FROM writes WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?
ORDER BY task_path, task_id, idx
"""
Reader = Callable[[Decoder, str, Sequence[Any]], Link]
"""Makes a checkpoint of a row: `read_checkpoint`, or one that also takes those of another program."""


def line(
    execute: Execute, key: tuple[str, str, str], decoder: Decoder, read: Reader = read_checkpoint
) -> Iterator[Link]:
    """A checkpoint and its ancestors, nearest first.

    Raises:
        BrokenCheckpoint: one of them is damaged.
    """
    # One statement however long the line is; what is not asked for is not read. A checkpoint that was stored again
    # under one of its descendants makes the line a loop.
    walked: set[str] = set()
    for row in execute(_LINE, key):
        if row[0] in walked:
            return
        walked.add(row[0])
        yield read(decoder, key[0], row)


def delta_history(
    execute: Execute,
    key: tuple[str, str, str],
    channels: Sequence[str],
    decoder: Decoder,
    read: Reader = read_checkpoint,
) -> dict[str, dict[str, Any]]:
    """Per channel its `writes`, oldest first, and its `seed` where an ancestor holds a value of it.

    Writes stored on the checkpoint itself belong to the next step and are left out. Within one checkpoint they come
    in the order of task path, task and index, which is the one the running graph applied them in.

    Raises:
        BrokenCheckpoint: something that the state of the checkpoint depends on is missing.
    """
    lines: dict[str, list[tuple[Link, Link]]] = {channel: [] for channel in channels}
    seeds: dict[str, Any] = {}
    child: Link | None = None
    for link in line(execute, key, decoder, read):
        if child is not None:
            sought = [channel for channel in channels if channel not in seeds]
            for channel in sought:
                lines[channel].append((child, link))
            seeds.update({channel: link.values[channel] for channel in sought if channel in link.values})
        child = link
        if child.id != key[2] and len(seeds) == len(channels):
            break
    if child is not None and read is read_checkpoint:
        _require_seed(key[0], child, [channel for channel in channels if channel not in seeds])
    return {
        channel: {"writes": _writes(execute, key, channel, steps, decoder, is_checked=read is read_checkpoint)}
        | ({"seed": seeds[channel]} if channel in seeds else {})
        for channel, steps in lines.items()
    }


def _require_seed(thread_id: str, last: Link, unseen: Sequence[str]) -> None:
    """Require that the ancestors reach back to the first value of each channel."""
    if last.parent_id is not None and any(name in last.versions and name not in last.values for name in unseen):
        raise BrokenCheckpoint(thread_id, last.id, f"its parent {last.parent_id} is missing")


def _writes(
    execute: Execute,
    key: tuple[str, str, str],
    channel: str,
    steps: Sequence[tuple[Link, Link]],
    decoder: Decoder,
    *,
    is_checked: bool,
) -> list[tuple[str, str, Any]]:
    """What was written to the channel on a line of checkpoints, each with its child, given nearest first."""
    rows: dict[str, list[tuple[Any, ...]]] = {}
    for checkpoint_id, *row in execute(_WRITES, (*key[:2], channel, json.dumps([own.id for _, own in steps]))):
        rows.setdefault(checkpoint_id, []).append(tuple(row))
    found: list[tuple[str, str, Any]] = []
    for child, own in reversed(steps):
        there = rows.get(own.id, [])
        if is_checked and channel not in child.values and (lost := missing_writes(child, own, channel, there)):
            text = f"of the writes to {channel} that it depends on, {lost} at {own.id} are missing or changed"
            raise BrokenCheckpoint(key[0], child.id, text)
        place = (*key[:2], own.id)
        for task_id, _, _, *row in there:
            stored = (channel, *row)
            value = read_write(decoder, place, stored) if is_checked else decoder.write(*stored)
            found.append((task_id, channel, value))
    return found


def pending_writes(execute: Execute, key: tuple[str, str, str], decoder: Decoder) -> list[tuple[str, str, Any]]:
    """The writes that are stored at a checkpoint and take effect with the next one: task, channel and value.

    Raises:
        BrokenCheckpoint: one of them cannot be read.
    """
    return [
        (task_id, current_channel(channel), read_write(decoder, key, (channel, kind, value)))
        for task_id, channel, kind, value in execute(_PENDING, key)
    ]


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
        AND checkpoint_id < :checkpoint_id
        AND CAST(json_extract(CAST(metadata AS TEXT), '$.step') AS INTEGER) < :step
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


def begin_branch(connection: Connection, place: tuple[str, str, str], parent_id: str | None, step: int) -> None:
    """Begin a branch with the checkpoint of `place`: thread, checkpoint and time."""
    thread_id, checkpoint_id, at = place
    named = {"thread_id": thread_id, "checkpoint_id": checkpoint_id, "at": at, "parent_id": parent_id, "step": step}
    parent_branch, from_seq = connection.execute(_BRANCH_POINT, named).fetchone() or (0, 0)
    connection.execute(_BEGIN, {**named, "parent_branch": parent_branch, "from_seq": from_seq})
    connection.execute(_ENTER, named)
    count_turns(connection, thread_id)


def count_turns(connection: Connection, thread_id: str) -> None:
    """Count the turns that the thread shows."""
    connection.execute(_COUNT_TURNS, {"thread_id": thread_id})
