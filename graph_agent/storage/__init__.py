"""Durable storage: checkpoints, journal, decisions, locks and blobs.

Importing the package imports none of it: short-lived commands use single modules without LangGraph. The functions
here choose between a file and a server.
"""

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from graph_agent.config.paths import ServerPath, blob_dir, named_database
from graph_agent.errors import UsageError

if TYPE_CHECKING:
    from graph_agent.ports import Clock
    from graph_agent.storage.blobs import FileBlobs
    from graph_agent.storage.postgres.database import PostgresDatabase
    from graph_agent.storage.postgres.reader import ServerUse, WorkNotices
    from graph_agent.storage.sqlite.database import Database
    from graph_agent.storage.sqlite.read_store import SqliteReadStore

__all__ = [
    "Connection",
    "Cursor",
    "DatabaseLock",
    "ReadSource",
    "listen_for_work",
    "named_server",
    "open_blobs",
    "open_blocking",
    "open_database",
    "open_read_connection",
    "open_read_store",
    "refuse_server",
    "require_driver",
    "server_stamp",
    "server_use",
    "thread_lock",
]


class Cursor(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int:
        """How many rows a statement has changed."""
        ...

    @property
    def lastrowid(self) -> int | None:
        """The number of the row that was inserted."""
        ...

    def fetchone(self) -> Any:
        """The next row, a tuple; None at the end."""
        ...

    def fetchall(self) -> list[Any]:
        """The rows that are left."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A connection of `sqlite3`, or one to a server that translates the statements.

    Statements are written for SQLite. Rows that exclude each other raise `sqlite3.IntegrityError`.
    """

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is under way."""
        ...

    def execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ..., /) -> Cursor:
        """Run a statement."""
        ...

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> Cursor:
        """Run a statement once for each of the values."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


class ReadSource(Protocol):
    """A connection that can only read: to a file, or to a server."""

    note: str
    is_foreign: bool
    is_legacy: bool

    @property
    def path(self) -> Path: ...

    def rows(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ...) -> list[tuple[Any, ...]]: ...

    def stream(
        self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ...
    ) -> Generator[tuple[Any, ...]]: ...

    def snapshot(self) -> AbstractContextManager[None]: ...

    def close(self) -> None: ...


async def open_database(path: Path) -> "Database":
    """Open the database for writing: a file, or one on a server.

    Raises:
        StorageError: it cannot be used (NewerSchema, DamagedDatabase among them); it is left as it was.
    """
    if isinstance(path, ServerPath):
        require_driver()
        from graph_agent.storage.postgres.database import PostgresDatabase  # noqa: PLC0415 - few use a server

        return await PostgresDatabase.open(path)
    from graph_agent.storage.sqlite.database import Database  # noqa: PLC0415 - as above

    return await Database.open(path)


def named_server(named: str | Path) -> Path | None:
    """The database on a server that a URL names; None for a file.

    Raises:
        ConfigError: it is a URL of another kind, or not a valid one.
    """
    path = named_database(named, os.environ)
    return path if isinstance(path, ServerPath) else None


def open_blocking(path: Path, tables: str) -> "PostgresDatabase":
    """Open a database on a server for callers without an event loop; see `PostgresDatabase.open_blocking`."""
    require_driver()
    from graph_agent.storage.postgres.database import PostgresDatabase  # noqa: PLC0415 - as above

    return PostgresDatabase.open_blocking(path, tables)


def open_read_store(path: Path) -> "SqliteReadStore":
    """Open the database for reading.

    Raises:
        NothingYet: there is none.
        NewerSchema: a newer version of the program wrote it.
        StorageError: it cannot be read.
    """
    from graph_agent.storage.sqlite.read_store import SqliteReadStore  # noqa: PLC0415 - as above

    return SqliteReadStore(open_read_connection(path), open_blobs(path))


def open_read_connection(path: Path) -> ReadSource:
    """As `open_read_store`, for callers with statements of their own."""
    if isinstance(path, ServerPath):
        require_driver()
        from graph_agent.storage.postgres.reader import PostgresReadConnection  # noqa: PLC0415 - as above

        return PostgresReadConnection.open(path)
    from graph_agent.storage.sqlite.read_connection import ReadConnection  # noqa: PLC0415 - as above

    return ReadConnection.open(path)


def open_blobs(path: Path) -> "FileBlobs":
    """The blobs that belong to a database."""
    if isinstance(path, ServerPath):
        require_driver()
        from graph_agent.storage.postgres.blobs import PostgresBlobs  # noqa: PLC0415 - as above

        return PostgresBlobs(path)
    from graph_agent.storage.blobs import FileBlobs  # noqa: PLC0415 - as above

    return FileBlobs(blob_dir(path))


def server_stamp(path: ServerPath) -> tuple[int, int, int] | None:
    """A value that changes with every write; None while the server cannot be reached."""
    require_driver()
    from graph_agent.storage.postgres.reader import stamp  # noqa: PLC0415 - as above

    return stamp(path)


def server_use(path: ServerPath) -> "ServerUse":
    """How a server with threads is used.

    Raises:
        StorageError: it cannot be used.
    """
    from graph_agent.storage.postgres.reader import server_use  # noqa: PLC0415 - as above

    return server_use(path)


def listen_for_work(path: ServerPath) -> "WorkNotices":
    """Connect to a server for notices that a worker may have something to do.

    Raises:
        StorageError: it cannot be reached.
    """
    from graph_agent.storage.postgres.reader import WorkNotices  # noqa: PLC0415 - as above

    return WorkNotices(path)


class DatabaseLock(Protocol):
    """The port `ThreadLock`, for threads that may also be deleted."""

    async def acquire(self, thread_id: str, owner_token: str, on_lost: Callable[[], None] | None = None) -> None:
        """See `ThreadLock.acquire`."""

    async def release(self) -> None:
        """See `ThreadLock.release`."""

    def mark_ending(self) -> None:
        """See `ThreadLock.mark_ending`."""

    def mark_deleted(self) -> None:
        """Note that the thread is being deleted, so that nobody takes it for lost."""


def thread_lock(
    database: "Database", clock: "Clock", on_wait: Callable[[str], None] = lambda _: None
) -> DatabaseLock:
    """A lock for one thread of the database; `on_wait` gets a sentence if it waits for a process that is ending."""
    if isinstance(database.path, ServerPath):
        from graph_agent.storage.postgres.database import PostgresDatabase  # noqa: PLC0415 - as above
        from graph_agent.storage.postgres.lease import PostgresThreadLock  # noqa: PLC0415 - as above

        if isinstance(database, PostgresDatabase):
            return PostgresThreadLock(database, clock)
    from graph_agent.storage.sqlite.thread_lock import FlockThreadLock  # noqa: PLC0415 - as above

    return FlockThreadLock(database, clock, on_wait)


def refuse_server(path: Path, command: str) -> None:
    """Refuse a database on a server.

    Raises:
        UsageError: it is one.
    """
    if isinstance(path, ServerPath):
        raise UsageError(
            f"`graph-agent {command}` is for a database file, and {path} is on a server: use its own tools, "
            "such as pg_dump and pg_amcheck."
        )


def require_driver() -> None:
    """Refuse a server where the library for it is missing.

    Raises:
        UsageError: it is.
    """
    try:
        import psycopg  # noqa: F401, PLC0415 - as above
    except ImportError as error:
        raise UsageError(
            "A database on a PostgreSQL server needs psycopg, which the extra postgres installs: "
            f"pip install 'graph-agent[postgres]' ({error})"
        ) from error
