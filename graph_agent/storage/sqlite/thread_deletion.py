"""Deletes threads: their rows, the permissions saved for them alone, and their messages in the search index."""

import sqlite3
from collections.abc import Iterable

from graph_agent.storage.sqlite.projections import delete_thread_rows
from graph_agent.storage.sqlite.search_index import update_search_index

__all__ = ["delete_threads"]


def delete_threads(connection: sqlite3.Connection, thread_ids: Iterable[str]) -> None:
    """Delete, within the transaction of a caller who holds the locks of them all."""
    for thread_id in thread_ids:
        delete_thread_rows(connection, thread_id)
        connection.execute("DELETE FROM grants WHERE scope = 'thread' AND thread_id = ?", (thread_id,))
        connection.execute("DELETE FROM leases WHERE thread_id = ?", (thread_id,))
        update_search_index(connection, thread_id)
