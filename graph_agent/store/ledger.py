"""The ledger: the newest record of every call a thread ever made, over all model messages and branches."""

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from graph_agent.calls import NEW_MESSAGE
from graph_agent.store.jsontext import json_text, storable

__all__ = ["fold_calls"]

_INSERT = """
INSERT INTO ledger (thread_id, call_id, seq, tool_name, status, risk, record, checkpoint_id, updated_at)
SELECT :thread_id, :call_id, coalesce(max(seq), 0) + 1, :tool_name, :status, :risk, :record, :checkpoint_id, :at
FROM ledger WHERE thread_id = :thread_id
"""
_UPDATE = """
UPDATE ledger SET tool_name = :tool_name, status = :status, risk = :risk, record = :record,
    checkpoint_id = :checkpoint_id, updated_at = :at
WHERE thread_id = :thread_id AND call_id = :call_id
"""


def fold_calls(connection: sqlite3.Connection, place: tuple[str, str, str], write: Mapping[Any, Any]) -> None:
    """Lay each change of the write over the stored record.

    Unlike the state's reducer this keeps the records of earlier messages and takes any status, because a branch may
    start again from an older one; only a lower attempt is passed over, and a partial record of an unknown call.
    """
    for call_id, change in write.items():
        if call_id != NEW_MESSAGE and isinstance(call_id, str) and isinstance(change, Mapping):
            _fold_one(connection, place, storable(call_id), change)


def _fold_one(
    connection: sqlite3.Connection, place: tuple[str, str, str], call_id: str, change: Mapping[Any, Any]
) -> None:
    thread_id, checkpoint_id, at = place
    row = connection.execute(
        "SELECT record FROM ledger WHERE thread_id = ? AND call_id = ?", (thread_id, call_id)
    ).fetchone()
    old: dict[str, Any] = json.loads(row[0]) if row else {}
    record = {**old, **change}
    if not {"tool_name", "status"} <= record.keys() or _attempt(record) < _attempt(old):
        return
    values = {
        "thread_id": thread_id,
        "call_id": call_id,
        "tool_name": storable(str(record["tool_name"])),
        "status": storable(str(record["status"])),
        "risk": storable(str(record.get("risk") or "")),
        "record": json_text(record),
        "checkpoint_id": checkpoint_id,
        "at": at,
    }
    connection.execute(_UPDATE if row else _INSERT, values)


def _attempt(record: Mapping[str, Any]) -> int:
    attempt = record.get("attempt", 1 if record else 0)
    return attempt if isinstance(attempt, int) else 0
