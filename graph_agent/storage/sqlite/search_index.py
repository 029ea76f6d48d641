"""Keeps the full-text index that `threads search` queries first.

It may lag behind: a reader scans the messages that it lacks. So it is updated when a thread becomes idle, and
costs no step anything. Triggers note what has to be removed from it; they need no part of SQLite that may be
missing.
"""

import sqlite3
from collections.abc import Iterable

from graph_agent.ports.stored_text import index_text
from graph_agent.storage import Connection

__all__ = ["has_search_index", "update_search_index"]

_CREATE = """
CREATE VIRTUAL TABLE IF NOT EXISTS search_index
USING fts5 (text, content = '', columnsize = 0, detail = none, tokenize = 'ascii')
"""
_REMOVE = "INSERT INTO search_index (search_index, rowid, text) VALUES ('delete', ?, ?)"
_MISSING = """
SELECT thread_id, seq, body FROM transcript t
WHERE t.role NOT IN ('system', 'summary') AND NOT EXISTS (
    SELECT 1 FROM search_entries s WHERE s.thread_id = t.thread_id AND s.seq = t.seq)
"""
_MISSING_OF_ONE = f"{_MISSING} AND t.thread_id = :thread_id"
# The usual case: what came since, found without going through all that the thread ever held.
_NEW_OF_ONE = """
SELECT thread_id, seq, body FROM transcript t
WHERE t.role NOT IN ('system', 'summary') AND t.thread_id = :thread_id
AND t.seq > (SELECT coalesce(max(s.seq), 0) FROM search_entries s WHERE s.thread_id = :thread_id)
"""


def has_search_index(connection: Connection) -> bool:
    """Whether this build of SQLite supports full-text indexes."""
    return connection.execute("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'").fetchone() is not None


def update_search_index(connection: Connection, thread_id: str | None = None) -> None:
    """Remove what is outdated and add what is new of a thread, or of all, in the caller's transaction."""
    if not has_search_index(connection):
        return
    connection.execute(_CREATE)
    # First of all: the number of a removed row may be used again.
    changed = _remove_outdated(connection)
    if changed is None or thread_id is None:
        statement, thread_id = _MISSING, None
    else:
        statement = _MISSING_OF_ONE if changed else _NEW_OF_ONE
    _add(connection, connection.execute(statement, {"thread_id": thread_id}).fetchall())


def _remove_outdated(connection: Connection) -> int | None:
    """Remove and count outdated messages; None where the index was inconsistent and has been emptied."""
    gone = connection.execute("SELECT id, body FROM search_removals").fetchall()
    try:
        # The index keeps no contents: it needs the text again to remove it.
        connection.executemany(_REMOVE, [(number, index_text(body)) for number, body in gone])
    except sqlite3.DatabaseError:
        connection.execute("INSERT INTO search_index (search_index) VALUES ('delete-all')")
        connection.execute("DELETE FROM search_entries")
        return None
    finally:
        connection.execute("DELETE FROM search_removals")
    return len(gone)


def _add(connection: Connection, rows: Iterable[tuple[str, int, str]]) -> None:
    for thread_id, seq, body in rows:
        number = connection.execute(
            "INSERT INTO search_entries (thread_id, seq) VALUES (?, ?)", (thread_id, seq)
        ).lastrowid
        connection.execute("INSERT INTO search_index (rowid, text) VALUES (?, ?)", (number, index_text(body)))
