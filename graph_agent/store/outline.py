"""Which tables a database has, and which one of a version must have. The index of words is none: it is optional."""

import sqlite3
from contextlib import closing

from graph_agent.store.migrations import MIGRATIONS

__all__ = ["lay_out", "table_names", "tables_of_version"]

# The index has tables of its own, whose names begin like it.
_NAMES = """
SELECT name FROM sqlite_schema WHERE type = 'table'
    AND name NOT LIKE 'sqlite@_%' ESCAPE '@' AND name <> 'words' AND name NOT LIKE 'words@_%' ESCAPE '@'
"""


def table_names(connection: sqlite3.Connection) -> frozenset[str]:
    """The tables that hold rows of somebody."""
    return frozenset(str(name) for (name,) in connection.execute(_NAMES))


def tables_of_version(version: int) -> frozenset[str]:
    """The tables that a database of this schema version has."""
    with closing(sqlite3.connect(":memory:")) as model:
        lay_out(model, version)
        return table_names(model)


def lay_out(connection: sqlite3.Connection, version: int) -> None:
    """Give an empty database the tables of a version, without any row."""
    for migration in MIGRATIONS[:version]:
        connection.executescript(migration.sql)
    connection.execute(f"PRAGMA user_version={version}")
