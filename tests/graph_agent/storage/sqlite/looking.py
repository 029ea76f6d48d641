"""Looking into a database from tests: rows, statements, and its logical content."""

import sqlite3
from pathlib import Path
from typing import Any

from graph_agent.storage.sqlite.database import Database

__all__ = ["content_of", "execute", "opened", "private_modes", "rows", "statements_of"]

PROJECTIONS = ("threads", "transcript", "branches", "call_log")


async def rows(database: Database, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """What a statement answers."""
    return await database.run(lambda connection: connection.execute(statement, values).fetchall())


async def execute(database: Database, statement: str, *values: Any) -> None:
    """Run one statement as a transaction of its own."""
    await database.write(lambda connection: connection.execute(statement, values))


async def content_of(database: Database, *tables: str) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of the tables; of the projections where none is named."""
    return {table: await rows(database, f"SELECT * FROM {table} ORDER BY 1, 2") for table in tables or PROJECTIONS}  # noqa: S608 - names from tests


def opened(database: Database) -> sqlite3.Connection:
    """The connection itself, for what only SQLite has."""
    assert isinstance(database._connection, sqlite3.Connection)
    return database._connection


async def statements_of(database: Database) -> list[str]:
    """A list that from now on takes the first word of each statement the database runs, settings aside."""
    seen: list[str] = []

    def note(statement: str) -> None:
        word = statement.split(maxsplit=1)[0]
        if word != "PRAGMA":
            seen.append(word)

    await database.run(lambda _: opened(database).set_trace_callback(note))
    return seen


def private_modes(folder: Path) -> dict[str, str]:
    """Permissions of everything below a folder, by name."""
    return {path.name: oct(path.stat().st_mode & 0o777) for path in sorted(folder.rglob("*"))}
