"""Finds damaged checkpoints, restores the newest one, and deletes those that cannot be rebuilt.

A state that lacks a step in the middle looks valid, but its history never happened: it is
removed.
"""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from graph_agent.ports.stored_text import json_text
from graph_agent.storage import Connection
from graph_agent.storage.serializer import MessageDecoder, StrictSerializer, wrap_snapshot
from graph_agent.storage.sqlite.checkpoint_rows import (
    DELTAS,
    DEPENDS_ON,
    BrokenCheckpoint,
    CheckpointCheck,
    check_checkpoints,
    read_checkpoint,
)
from graph_agent.storage.sqlite.deltas import VISIBLE

__all__ = ["drop_incomplete_checkpoints", "find_damage", "restore_thread"]

_THERE = "thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
_LINK = f"SELECT parent_checkpoint_id, metadata FROM checkpoints WHERE {_THERE}"  # noqa: S608 - names only
_COUNT = f"SELECT count(*) FROM writes WHERE {_THERE} AND idx >= 0"  # noqa: S608 - names only
_NOTE_GONE = """
INSERT OR IGNORE INTO pruned_checkpoints (thread_id, checkpoint_id) SELECT ?1, ?2 WHERE NOT EXISTS (
    SELECT 1 FROM checkpoints WHERE thread_id = ?1 AND checkpoint_ns = '' AND checkpoint_id = ?2)
"""


def find_damage(connection: Connection, thread_id: str | None = None) -> list[CheckpointCheck]:
    """The checkpoints of a thread, or of all, that are damaged or depend on something that is missing.

    SQLite finds nothing wrong with such rows.
    """
    return [found for found in check_checkpoints(connection.execute, MessageDecoder(), thread_id) if found.problem]


def drop_incomplete_checkpoints(connection: Connection, thread_id: str | None = None) -> dict[str, int]:
    """Delete the checkpoints whose state cannot be rebuilt, of one thread or of all; returns how many, by thread.

    The writes of an unfinished step that cannot be read are deleted too, and counted: the step runs again. Other
    losses are recorded, so that only new damage is found later.
    """
    dropped: Counter[str] = Counter()
    damage = find_damage(connection, thread_id)
    for found in damage:
        key = (found.thread_id, found.namespace, found.id)
        if not found.is_whole:
            connection.execute(f"DELETE FROM checkpoints WHERE {_THERE}", key)  # noqa: S608 - names only
        if not (found.is_whole and found.has_writes):
            dropped[found.thread_id] += 1
            connection.execute(f"DELETE FROM writes WHERE {_THERE}", key)  # noqa: S608 - names only
    for found in find_damage(connection, thread_id) if damage else ():
        _record_lost_history(connection, (found.thread_id, found.namespace, found.id))
    return dict(dropped)


def _record_lost_history(connection: Connection, key: tuple[str, str, str]) -> None:
    """Record that the history before a checkpoint, which holds its whole state, is lost."""
    parent_id, metadata = connection.execute(_LINK, key).fetchone()
    connection.execute(_NOTE_GONE, (key[0], parent_id))
    about = json.loads(metadata)
    if DEPENDS_ON in about:
        about[DEPENDS_ON] = {"writes": connection.execute(_COUNT, (*key[:2], parent_id)).fetchone()[0]}
        values = (json_text(about).encode(), *key)
        connection.execute(f"UPDATE checkpoints SET metadata = ? WHERE {_THERE}", values)  # noqa: S608 - names only


_HEAD = """
SELECT c.checkpoint_id, c.parent_checkpoint_id, c.type, c.checkpoint, CAST(c.metadata AS BLOB)
FROM checkpoints c JOIN threads USING (thread_id, checkpoint_id) WHERE thread_id = ? AND checkpoint_ns = ''
    AND checkpoint_id = (SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '')
"""
_SHOWN = f"""
{VISIBLE} SELECT t.seq, t.branch, t.message_id, t.role, t.body FROM transcript t
JOIN line ON t.branch = line.branch AND t.seq <= line.upto WHERE t.thread_id = :thread_id ORDER BY t.seq
"""  # noqa: S608 - names only
_RECORDS = """
SELECT call_id, CASE WHEN json_type(record, '$.result') IS NOT NULL THEN record ELSE json_set(record, '$.result', (
    SELECT json_extract(outcome, '$.output') FROM journal j
    WHERE j.thread_id = l.thread_id AND j.call_id = l.call_id AND outcome IS NOT NULL
    ORDER BY attempt DESC LIMIT 1)) END
FROM call_log l WHERE thread_id = ? AND call_id IN (SELECT value FROM json_each(?)) ORDER BY seq
"""
_IS_COMPLETE = "SELECT count(*) = coalesce(max(seq), 0) FROM transcript WHERE thread_id = ?"
_NOTE_POINT = "INSERT OR REPLACE INTO prune_points (thread_id, checkpoint_id, branch, seq) VALUES (?, ?, ?, ?)"
_COUNTERS = "counters_since_delta_snapshot"
_ROLES = ("user", "assistant", "tool", "system")


def restore_thread(connection: Connection, thread_id: str) -> tuple[bool, dict[str, int]]:
    """Restore the newest checkpoint if possible, and drop damaged ones; returns whether, and how many by thread."""
    is_restored = _restore_head(connection, thread_id, StrictSerializer())
    return is_restored, drop_incomplete_checkpoints(connection, thread_id)


def _restore_head(connection: Connection, thread_id: str, serializer: StrictSerializer) -> bool:
    """Give the newest checkpoint of a thread the conversation and calls that transcript and call log know.

    Those were written in its transaction, and hold the same as the lost writes. False where they are
    incomplete too, or the checkpoint itself cannot be read.
    """
    row = connection.execute(_HEAD, (thread_id, thread_id)).fetchone()
    try:
        head = read_checkpoint(serializer.decoder, thread_id, row) if row else None
        missing = [] if head is None else [one for one in DELTAS if one in head.versions and one not in head.values]
        if head is None or not missing:
            return False
        shown = connection.execute(_SHOWN, {"thread_id": thread_id}).fetchall()
        messages = [_message(*entry[2:]) for entry in shown if entry[3] in _ROLES]
    except (BrokenCheckpoint, LookupError, TypeError, ValueError):
        return False
    if not connection.execute(_IS_COMPLETE, (thread_id,)).fetchone()[0] or not _has_matching_results(messages):
        return False
    asked = messages[-1].tool_calls if isinstance(messages[-1], AIMessage) else []
    found = connection.execute(_RECORDS, (thread_id, json_text([one["id"] for one in asked]))).fetchall()
    values = {"messages": messages, "calls": {call_id: json.loads(record) for call_id, record in found}}
    state = {**head.values, **{name: wrap_snapshot(values[name]) for name in missing}}
    about = {name: value for name, value in head.metadata.items() if name != _COUNTERS}
    connection.execute(
        f"UPDATE checkpoints SET type = ?, checkpoint = ?, metadata = ? WHERE {_THERE}",  # noqa: S608 - names only
        (
            *serializer.dumps_typed({**head.checkpoint, "channel_values": state}),
            json_text(about).encode(),
            *(thread_id, "", head.id),
        ),
    )
    seq, branch, *_ = shown[-1]
    connection.execute(_NOTE_POINT, (thread_id, head.id, branch, seq))
    return True


def _message(message_id: str, role: str, body: str) -> BaseMessage:
    """A message from its transcript row."""
    stored = json.loads(body)
    named = {"content": stored["content"], "id": message_id, "name": stored.get("name")}
    if role == "assistant":
        usage = stored.get("usage")
        return AIMessage(**named, tool_calls=stored.get("tool_calls") or [], usage_metadata=usage)
    if role == "tool":
        return ToolMessage(**named, tool_call_id=stored["tool_call_id"], status=stored.get("status") or "success")
    return HumanMessage(**named) if role == "user" else SystemMessage(**named)


def _has_matching_results(messages: Sequence[BaseMessage]) -> bool:
    """Whether each call is followed by its result; those of the newest message may still be open."""
    open_calls: list[Any] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in open_calls:
                return False
            open_calls.remove(message.tool_call_id)
        elif open_calls:
            return False
        elif isinstance(message, AIMessage):
            open_calls = [call["id"] for call in message.tool_calls]
    return bool(messages) and (not open_calls or isinstance(messages[-1], AIMessage))
