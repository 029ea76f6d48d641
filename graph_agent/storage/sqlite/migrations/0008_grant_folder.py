"""Where the commands of a grant start; the third migration got it after databases had been made with it."""

import sqlite3

from graph_agent.storage.sqlite.migrations import Migration

__all__ = ["MIGRATION"]


def _add_column(connection: sqlite3.Connection) -> None:
    if "place" not in {row[1] for row in connection.execute("PRAGMA table_info(grants)")}:
        connection.execute("ALTER TABLE grants ADD COLUMN place TEXT NOT NULL DEFAULT '.'")


MIGRATION = Migration("grant_folder", "", fill=_add_column)
