"""Looking into a database from tests: rows, statements, and its logical content."""

import sqlite3
from pathlib import Path
from typing import Any

from graph_agent.config.paths import ServerPath
from graph_agent.storage.sqlite.database import Database

__all__ = [
    "columns_of",
    "content_of",
    "execute",
    "opened",
    "private_modes",
    "rows",
    "statements_of",
    "tables_of",
]

PROJECTIONS = ("threads", "transcript", "branches", "call_log")


async def rows(database: Database, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """What a statement answers."""
    return await database.run(lambda connection: connection.execute(statement, values).fetchall())


async def execute(database: Database, statement: str, *values: Any) -> None:
    """Run one statement as a transaction of its own."""
    await database.write(lambda connection: connection.execute(statement, values))


async def content_of(database: Database, *tables: str) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of the tables; of the projections where none is named."""
    return {table: await _content(database, table) for table in tables or PROJECTIONS}


async def _content(database: Database, table: str) -> list[tuple[Any, ...]]:
    names = [name for name in await columns_of(database, table) if name != "rowid"]
    return await rows(database, f"SELECT {', '.join(names)} FROM {table} ORDER BY 1, 2")  # noqa: S608 - names from the schema


async def columns_of(database: Database, table: str) -> dict[str, str]:
    """The columns of a table with their types, in capitals."""
    if isinstance(database.path, ServerPath):
        query = "SELECT column_name, upper(data_type) FROM information_schema.columns WHERE table_name = ?"
        return dict(
            await rows(database, f"{query} AND table_schema = current_schema ORDER BY ordinal_position", table)
        )
    return {name: kind for _, name, kind, *_ in await rows(database, f"PRAGMA table_info({table})")}


async def tables_of(database: Database) -> list[str]:
    """The tables that hold rows of threads; those of the search index on a server are always empty."""
    if isinstance(database.path, ServerPath):
        query = "SELECT table_name FROM information_schema.columns WHERE column_name = 'thread_id'"
        query += " AND table_schema = current_schema AND NOT starts_with(table_name, 'search_')"
        query += " AND table_name IN (SELECT tablename FROM pg_tables)"
        return [name for (name,) in await rows(database, query)]
    query = "SELECT m.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'"
    return [name for (name,) in await rows(database, f"{query} AND c.name = 'thread_id'")]


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
