"""Copies a whole database to an empty one: from a file to a server, back, or from a server to another.

All rows go over in one transaction, and every thread is compared by a digest of its rows before that is committed.
"""

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from graph_agent.config.paths import ServerPath
from graph_agent.errors import StorageError, ThreadHeld, UsageError
from graph_agent.storage import (
    Connection,
    ReadSource,
    open_blobs,
    open_database,
    open_read_connection,
)
from graph_agent.storage.postgres.connection import PostgresConnection
from graph_agent.storage.postgres.translation import NUMBERED
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.migrations import SCHEMA_VERSION
from graph_agent.storage.sqlite.pruning import referenced_blobs
from graph_agent.storage.sqlite.schema import create_tables
from graph_agent.storage.sqlite.search_index import update_search_index
from graph_agent.storage.sqlite.thread_lock import holder

__all__ = ["DatabaseCopy", "copy_database"]

_NOT_COPIED = ("leases", "workers", "search_entries", "search_removals")
"""Tables about processes, and derived ones."""
_TABLES = """
SELECT t.name, c.name, c.type, c.pk FROM sqlite_schema t JOIN pragma_table_info(t.name) c
WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite@_%' ESCAPE '@' ORDER BY t.rowid, c.cid
"""
_BATCH_ROWS = 500
"""How many rows are inserted at a time."""


class DatabaseCopy(NamedTuple):
    """What was copied."""

    digests: Mapping[str, str]
    """SHA-256 of the rows of each thread, the same on both sides."""
    rows: int
    blobs: int
    missing: int
    """Blobs that a row names and that the source had lost already."""


async def copy_database(source: Path, target: Path) -> DatabaseCopy:
    """Copy all threads with everything that belongs to them, permissions and tasks.

    Raises:
        NothingYet: there is nothing to copy.
        UsageError: both are the same, or threads are in the target already.
        ThreadHeld: a process holds a thread of the source; its next steps would be missing in the copy.
        StorageError: a database cannot be used, or a thread differs in the copy; nothing was copied.
    """
    if str(source) == str(target):
        raise UsageError(f"Both databases are {source}. Name another one to copy to.")
    if not isinstance(source, ServerPath) and not isinstance(target, ServerPath):
        raise UsageError("Both databases are files. Copy one with `graph-agent doctor --backup FILE`.")
    open_read_connection(source).close()  # Fails if there is no database; opening it for writing would create one.
    async with await open_database(source) as opened, await open_database(target) as empty:
        await opened.run(_require_released)
        if threads := (await empty.rows("SELECT count(*) FROM threads", ()))[0][0]:
            raise UsageError(f"The database {target} is not empty (threads: {threads}). Name an empty one.")
        blobs, missing = await _copy_blobs(opened, target)
        digests, rows = await empty.write(lambda connection: _copy_rows(connection, source))
    return DatabaseCopy(digests, rows, blobs, missing)


def _require_released(connection: Connection) -> None:
    open_leases = connection.execute("SELECT thread_id FROM leases WHERE ended_at IS NULL").fetchall()
    for (thread_id,) in open_leases:
        found = holder(connection, thread_id)
        if found is not None and found.is_alive:
            raise ThreadHeld(
                f"Thread {thread_id!r} is open in another process (pid {found.pid} on {found.host}). Close it "
                "first: its next steps would be missing in the copy."
            )


async def _copy_blobs(opened: Database, target: Path) -> tuple[int, int]:
    """How many blobs were copied, and how many were missing."""
    source_blobs, target_blobs = open_blobs(opened.path), open_blobs(target)

    def copy(connection: Connection) -> tuple[int, int]:
        done: Counter[bool] = Counter()
        for digest in sorted(referenced_blobs(connection, source_blobs)):
            try:
                target_blobs.put(source_blobs.get(f"blob:sha256:{digest}"))
            except StorageError:
                done[False] += 1
            else:
                done[True] += 1
        return done[True], done[False]

    return await opened.run(copy)


class _Table(NamedTuple):
    name: str
    columns: tuple[str, ...]
    selected: str
    """The columns, with BLOB columns cast: a file may hold text in them."""
    order: str


@cache
def _tables() -> Sequence[_Table]:
    with closing(sqlite3.connect(":memory:")) as model:
        create_tables(model, SCHEMA_VERSION)
        columns: dict[str, list[tuple[str, str, int]]] = {}
        for table, *column in model.execute(_TABLES).fetchall():
            if table not in _NOT_COPIED:
                columns.setdefault(table, []).append((column[0], column[1], column[2]))
        unnumbered = {
            table for (table,) in model.execute("SELECT name FROM sqlite_schema WHERE sql LIKE '%WITHOUT ROWID%'")
        }
    return [
        _Table(
            table,
            tuple(name for name, _, _ in found),
            ", ".join(f"CAST({name} AS BLOB)" if kind == "BLOB" else name for name, kind, _ in found),
            ", ".join(name for name, _, key in found if key) if table in unnumbered else "rowid",
        )
        for table, found in columns.items()
    ]


def _copy_rows(connection: Connection, source: Path) -> tuple[dict[str, str], int]:
    """The digests of all threads, and how many rows were copied."""
    if isinstance(connection, PostgresConnection):  # It is idle while the other side is read.
        connection.session.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
    with closing(open_read_connection(source)) as reading, reading.snapshot():
        threads, count = _thread_ids(reading), 0
        for table in _tables():
            places = ", ".join("?" * len(table.columns))
            insert = f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({places})"  # noqa: S608 - names of our own
            for thread_id in threads:
                rows = reading.rows(*_select(table, thread_id))
                count += len(rows)
                for start in range(0, len(rows), _BATCH_ROWS):
                    connection.executemany(insert, rows[start : start + _BATCH_ROWS])
        digests = {thread_id: _digest(reading.rows, thread_id) for thread_id in threads}
    for thread_id, digest in digests.items():
        if _digest(lambda sql, values: connection.execute(sql, values).fetchall(), thread_id) != digest:
            raise StorageError(f"thread {thread_id!r} differs in the copy. Nothing was copied")
    update_search_index(connection)
    if isinstance(connection, PostgresConnection):
        for name in NUMBERED.difference(_NOT_COPIED):
            connection.session.execute(_CONTINUE_NUMBERS.format(table=name).encode())
    return digests, count


_CONTINUE_NUMBERS = """
SELECT setval(pg_get_serial_sequence('{table}', 'id'), max(id)) FROM {table} HAVING max(id) IS NOT NULL
"""


def _thread_ids(reading: ReadSource) -> list[str]:
    """All thread ids, oldest first, then those of rows whose thread was deleted."""
    listed = [thread_id for (thread_id,) in reading.rows("SELECT thread_id FROM threads ORDER BY rowid")]
    others = {
        thread_id
        for table in _tables()
        for (thread_id,) in reading.rows(f"SELECT DISTINCT thread_id FROM {table.name}")  # noqa: S608 - names of our own
    }
    return [*listed, *sorted(others.difference(listed))]


def _select(table: _Table, thread_id: str) -> tuple[str, tuple[str]]:
    return f"SELECT {table.selected} FROM {table.name} WHERE thread_id = ? ORDER BY {table.order}", (thread_id,)  # noqa: S608 - names of our own


def _digest(rows: Any, thread_id: str) -> str:
    """The digest of all rows about a thread, whatever their order."""
    digest = hashlib.sha256()
    for part in _parts(rows, thread_id):
        digest.update(part.encode("utf-8", "replace"))
    return digest.hexdigest()


def _parts(rows: Any, thread_id: str) -> Iterator[str]:
    for table in _tables():
        yield table.name
        yield from sorted(repr(tuple(row)) for row in rows(*_select(table, thread_id)))
