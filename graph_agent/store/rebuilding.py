"""Deriving a thread's tables again from the checkpoints that stand. Knows where a line of checkpoints was cut.

What rests on a checkpoint that is gone cannot be derived any more: those rows are kept as they are. A checkpoint
whose parent is gone brings what its own snapshot holds.
"""

import sqlite3

from graph_agent.store.branches import count_turns
from graph_agent.store.jsontext import json_text
from graph_agent.store.projections import Projections

__all__ = ["rebuild_thread"]

_EDGES = """
SELECT c.checkpoint_id, coalesce(
    (SELECT branch FROM branches b WHERE b.thread_id = c.thread_id AND b.checkpoint_id = c.checkpoint_id),
    (SELECT branch FROM cuts WHERE cuts.thread_id = c.thread_id AND cuts.checkpoint_id = c.checkpoint_id), 0)
FROM checkpoints c WHERE c.thread_id = ? AND c.checkpoint_ns = '' AND c.parent_checkpoint_id IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM checkpoints p WHERE p.thread_id = c.thread_id AND p.checkpoint_ns = ''
        AND p.checkpoint_id = c.parent_checkpoint_id)
"""
_DERIVED = """
thread_id = :thread_id AND checkpoint_id NOT IN (SELECT value FROM json_each(:edges)) AND checkpoint_id IN (
    SELECT checkpoint_id FROM checkpoints WHERE thread_id = :thread_id AND checkpoint_ns = '')
"""
_BEGUN = """
SELECT thread_id, call_id, seq, tool_name, status, risk, record, checkpoint_id, updated_at,
    status NOT IN ('success', 'error', 'cancelled') FROM ledger
WHERE thread_id = ?1 AND call_id IN (SELECT call_id FROM journal WHERE thread_id = ?1)
"""
_PUT_BACK = "INSERT OR IGNORE INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_UNTOLD = """
INSERT INTO ledger (thread_id, call_id, seq, tool_name, status, record, checkpoint_id, updated_at, left_behind)
SELECT thread_id, call_id,
    (SELECT coalesce(max(seq), 0) FROM ledger WHERE thread_id = ?1)
        + row_number() OVER (ORDER BY started_at, call_id),
    ?2, status, json_object('call_id', call_id, 'tool_name', ?2, 'arguments', json('{}'), 'status', status,
        'attempt', attempt, 'started_at', started_at, 'ended_at', at),
    coalesce((SELECT checkpoint_id FROM threads WHERE thread_id = ?1), ''), at, status = 'interrupted'
FROM (SELECT thread_id, call_id, max(attempt) AS attempt, min(started_at) AS started_at,
        max(coalesce(ended_at, started_at)) AS at,
        coalesce(max(CASE WHEN status IN ('success', 'error') THEN status END), 'interrupted') AS status
    FROM journal j WHERE thread_id = ?1 AND NOT EXISTS (
        SELECT 1 FROM ledger l WHERE l.thread_id = j.thread_id AND l.call_id = j.call_id)
    GROUP BY thread_id, call_id)
"""
_LOST_NAME = "(lost)"
"""In place of the tool of a call of which nothing is left but what the journal knows."""
_ANY = "SELECT 1 FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''"
_RESET = """
UPDATE threads SET checkpoint_id = NULL, next_nodes = '[]', outcome = '', usage = NULL, branch = 0, turns = 0
WHERE thread_id = ?
"""


def rebuild_thread(connection: sqlite3.Connection, thread_id: str, projections: Projections) -> None:
    """Derive list entry, transcript, branches and ledger again; what the user set (title, mode, ...) stays."""
    edges: dict[str, int] = dict(connection.execute(_EDGES, (thread_id,)).fetchall())
    begun = connection.execute(_BEGUN, (thread_id,)).fetchall()
    _clear(connection, thread_id, edges)
    connection.execute(_RESET, (thread_id,))
    for stored in projections.stored(connection, thread_id):
        branch = edges.get(str(stored.checkpoint["id"]))
        if branch is None:
            projections.fold(connection, stored)
        else:
            projections.take_up(connection, stored, branch)
    count_turns(connection, thread_id)
    # What the journal knows is a fact, also where every checkpoint that told of it is gone.
    connection.executemany(_PUT_BACK, begun)
    connection.execute(_UNTOLD, (thread_id, _LOST_NAME))


def _clear(connection: sqlite3.Connection, thread_id: str, edges: dict[str, int]) -> None:
    if not connection.execute(_ANY, (thread_id,)).fetchone():
        return
    if not edges:
        for table in ("transcript", "branches", "ledger"):
            connection.execute(f"DELETE FROM {table} WHERE thread_id = ?", (thread_id,))  # noqa: S608 - names only
        return
    named = {"thread_id": thread_id, "edges": json_text(list(edges))}
    # Of a call it cannot be told whether all that was written about it stands: records are laid over what is there.
    for table in ("transcript", "branches"):
        connection.execute(f"DELETE FROM {table} WHERE {_DERIVED}", named)  # noqa: S608 - names only
