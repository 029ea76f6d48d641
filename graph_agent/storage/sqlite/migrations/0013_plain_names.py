"""Tables, columns and stored fields get their present names."""

import sqlite3

from graph_agent.storage.legacy_names import CONTENTS
from graph_agent.storage.sqlite.migrations import Migration
from graph_agent.storage.sqlite.search_index import has_search_index, update_search_index

__all__ = ["MIGRATION"]

_SQL = """
DROP TRIGGER transcript_changed;
DROP TRIGGER transcript_removed;
DROP INDEX ledger_open;
DROP INDEX ledger_in_order;
DROP INDEX shells_by_thread;

ALTER TABLE ledger RENAME TO call_log;
ALTER TABLE cuts RENAME TO prune_points;
ALTER TABLE pruned RENAME TO pruned_checkpoints;
ALTER TABLE imported RENAME TO imported_checkpoints;
ALTER TABLE shells RENAME TO background_shells;
ALTER TABLE searched RENAME TO search_entries;
ALTER TABLE unsearched RENAME TO search_removals;

ALTER TABLE threads RENAME COLUMN asks TO model_choice;
ALTER TABLE call_log RENAME COLUMN left_behind TO abandoned;
ALTER TABLE journal RENAME COLUMN undone TO reverted;
ALTER TABLE decisions RENAME COLUMN outside TO outside_sandbox;
ALTER TABLE leases RENAME COLUMN life TO owner_token;
ALTER TABLE grants RENAME COLUMN place TO folder;

CREATE INDEX call_log_open ON call_log (status) WHERE status NOT IN ('success', 'error', 'cancelled');
CREATE INDEX call_log_in_order ON call_log (thread_id, seq);
CREATE INDEX background_shells_by_thread ON background_shells (thread_id, id);
CREATE TRIGGER transcript_changed AFTER UPDATE OF body ON transcript WHEN old.body IS NOT new.body BEGIN
    INSERT OR IGNORE INTO search_removals
        SELECT id, old.body FROM search_entries WHERE thread_id = old.thread_id AND seq = old.seq;
    DELETE FROM search_entries WHERE thread_id = old.thread_id AND seq = old.seq;
END;
CREATE TRIGGER transcript_removed AFTER DELETE ON transcript BEGIN
    INSERT OR IGNORE INTO search_removals
        SELECT id, old.body FROM search_entries WHERE thread_id = old.thread_id AND seq = old.seq;
    DELETE FROM search_entries WHERE thread_id = old.thread_id AND seq = old.seq;
END;
"""


def _rename_contents(connection: sqlite3.Connection) -> None:
    """Rename stored fields and values; those of checkpoints and writes are renamed when they are decoded."""
    for (table, column), rename in CONTENTS.items():
        connection.create_function("renamed", 1, rename, deterministic=True)
        connection.execute(
            f"UPDATE {table} SET {column} = renamed({column}) WHERE {column} IS NOT renamed({column})"  # noqa: S608 - names of our own
        )
    _rename_search_index(connection)
    update_search_index(connection)


def _rename_search_index(connection: sqlite3.Connection) -> None:
    if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'words'").fetchone():
        return
    if has_search_index(connection):
        connection.execute("ALTER TABLE words RENAME TO search_index")
    else:
        # This build of SQLite cannot touch it; one that can makes a new index of every message.
        connection.execute("DELETE FROM search_entries")
        connection.execute("DELETE FROM search_removals")


MIGRATION = Migration("plain_names", _SQL, fill=_rename_contents)
