"""The call log: the newest record of every call of a thread, over all model messages and branches.

A call that is open on a branch which its thread left is marked abandoned: nobody asks about it any more.
"""

import json
import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

from graph_agent.calls import NEW_MESSAGE, merge_calls
from graph_agent.storage.json_text import json_text, storable

__all__ = [
    "abandon_open_calls",
    "fold_calls",
    "reconcile",
    "restart_from",
]

_INSERT = """
INSERT INTO call_log (thread_id, call_id, seq, tool_name, status, risk, record, checkpoint_id, updated_at)
SELECT :thread_id, :call_id, coalesce(max(seq), 0) + 1, :tool_name, :status, :risk, :record, :checkpoint_id, :at
FROM call_log WHERE thread_id = :thread_id
"""
_UPDATE = """
UPDATE call_log SET tool_name = :tool_name, status = :status, risk = :risk, record = :record,
    checkpoint_id = :checkpoint_id, updated_at = :at, abandoned = 0
WHERE thread_id = :thread_id AND call_id = :call_id
"""
_IN_JOURNAL = """
SELECT 1 FROM journal WHERE thread_id = ? AND call_id = ? AND outcome IS NOT NULL
    AND json_extract(outcome, '$.output') = ?
"""
_LONG_RESULT = 256
_ABANDON = """
UPDATE call_log SET abandoned = 1 WHERE thread_id = ? AND status NOT IN ('success', 'error', 'cancelled')
"""

_LOGGED = """
SELECT status, coalesce(json_extract(record, '$.attempt'), 1) FROM call_log WHERE thread_id = ? AND call_id = ?
"""
_REOPEN = "UPDATE call_log SET abandoned = 0 WHERE thread_id = ? AND call_id = ?"


def fold_calls(connection: sqlite3.Connection, place: tuple[str, str, str], write: Mapping[Any, Any]) -> None:
    """Lay each change of the write over the stored record.

    Unlike the state's reducer this keeps the records of earlier messages and takes any status, because a branch may
    start again from an older one; only a lower attempt is passed over, and a partial record of an unknown call.
    The records of a new message are whole: nothing of a call that had the same id on another branch stays.
    """
    for call_id, change in _changes(write):
        _fold_one(connection, place, (call_id, change), is_whole=NEW_MESSAGE in write)


def restart_from(connection: sqlite3.Connection, place: tuple[str, str, str], writes: Iterable[Any]) -> None:
    """Make the ledger that of a checkpoint that was resumed, given all writes that its calls depend on.

    Each call of that state gets the record that it has there; what is open elsewhere is abandoned.
    """
    abandon_open_calls(connection, place[0])
    sound = [_mergeable(write) for write in writes if isinstance(write, Mapping)]
    for call_id, record in merge_calls({}, sound).items():
        _fold_one(connection, place, (call_id, record), is_whole=True)


def abandon_open_calls(connection: sqlite3.Connection, thread_id: str) -> None:
    """Mark the open calls of a thread that continues from another checkpoint."""
    connection.execute(_ABANDON, (thread_id,))


def reconcile(connection: sqlite3.Connection, place: tuple[str, str, str], calls: Mapping[Any, Any]) -> None:
    """Correct what the ledger tells otherwise than the calls of a state; what it tells alike stays as it is."""
    for call_id, record in _changes(calls):
        row = connection.execute(_LOGGED, (place[0], call_id)).fetchone()
        if row == (record.get("status"), _attempt(record)):
            connection.execute(_REOPEN, (place[0], call_id))
        else:
            _fold_one(connection, place, (call_id, record), is_whole=True)


def _mergeable(write: Mapping[Any, Any]) -> dict[str, Mapping[Any, Any]]:
    """The part of a write that the reducer accepts."""
    changes = {
        call_id: change
        for call_id, change in _changes(write)
        if isinstance(change.get("status", ""), str) and isinstance(change.get("attempt", 1), int)
    }
    return {NEW_MESSAGE: {}, **changes} if NEW_MESSAGE in write else changes


def _changes(write: Mapping[Any, Any]) -> list[tuple[str, Mapping[Any, Any]]]:
    return [
        (storable(call_id), change)
        for call_id, change in write.items()
        if call_id != NEW_MESSAGE and isinstance(call_id, str) and isinstance(change, Mapping)
    ]


def _fold_one(
    connection: sqlite3.Connection,
    place: tuple[str, str, str],
    written: tuple[str, Mapping[Any, Any]],
    *,
    is_whole: bool,
) -> None:
    call_id, change = written
    thread_id, checkpoint_id, at = place
    row = connection.execute(
        "SELECT record FROM call_log WHERE thread_id = ? AND call_id = ?", (thread_id, call_id)
    ).fetchone()
    old: dict[str, Any] = json.loads(row[0]) if row and not is_whole else {}
    record = {**old, **change}
    if not {"tool_name", "status"} <= record.keys() or _attempt(record) < _attempt(old):
        return
    values = {
        "thread_id": thread_id,
        "call_id": call_id,
        "tool_name": storable(str(record["tool_name"])),
        "status": storable(str(record["status"])),
        "risk": storable(str(record.get("risk") or "")),
        "record": json_text(_without_copy(connection, thread_id, record)),
        "checkpoint_id": checkpoint_id,
        "at": at,
    }
    connection.execute(_UPDATE if row else _INSERT, values)


def _without_copy(connection: sqlite3.Connection, thread_id: str, record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The record without a long result that the journal holds word for word; readers take it from there."""
    result = record.get("result")
    if not isinstance(result, str) or len(result) < _LONG_RESULT:
        return record
    key = (thread_id, storable(str(record.get("call_id"))), storable(result))
    if connection.execute(_IN_JOURNAL, key).fetchone() is None:
        return record
    return {name: value for name, value in record.items() if name != "result"}


def _attempt(record: Mapping[str, Any]) -> int:
    attempt = record.get("attempt", 1 if record else 0)
    return attempt if isinstance(attempt, int) else 0
