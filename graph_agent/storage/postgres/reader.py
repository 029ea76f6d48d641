"""The database on a server, read only: it works beside processes that write, and on a standby.

Also how the server is used, and its notices that there may be work.
"""

import atexit
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from graph_agent.config.paths import ServerPath
from graph_agent.errors import InternalError, StorageError
from graph_agent.ports.stored_text import storable
from graph_agent.storage.postgres.connection import PostgresConnection, Values, connect
from graph_agent.storage.postgres.errors import translate_error
from graph_agent.storage.postgres.schema import require_readable
from graph_agent.wording import format_count

__all__ = ["PostgresReadConnection", "ServerUse", "WorkNotices", "server_use", "stamp"]


class PostgresReadConnection:
    """See `sqlite.ReadConnection`."""

    is_foreign = False
    is_legacy = False
    note = ""

    def __init__(self, path: ServerPath, connection: PostgresConnection) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    def open(cls, path: ServerPath) -> "PostgresReadConnection":
        """Connect.

        Raises:
            NothingYet: there are no threads.
            NewerSchema: a newer version of the program wrote them.
            StorageError: the server cannot be used, or its tables have to be migrated.
        """
        database = cls(path, PostgresConnection(connect(path, is_read_only=True)))
        try:
            require_readable(path, database._connection)
        except psycopg.Error as error:
            database.close()
            raise translate_error(path, error) from error
        except BaseException:
            database.close()
            raise
        return database

    def rows(self, sql: str, parameters: Values = ()) -> list[tuple[Any, ...]]:
        """All rows of one SELECT.

        Raises:
            StorageError: the server failed, or cannot be reached.
        """
        if self._connection.session.closed:
            raise InternalError(f"{self.path} was read after it was closed")
        try:
            return self._connection.execute(sql, _storable(parameters)).fetchall()
        except psycopg.Error as error:
            raise translate_error(self.path, error) from error

    def stream(self, sql: str, parameters: Values = ()) -> Generator[tuple[Any, ...]]:
        """The rows of one SELECT; ancestors are fetched as they are needed. Fails as `rows` does."""
        try:
            yield from self._connection.execute(sql, _storable(parameters))
        except psycopg.Error as error:
            raise translate_error(self.path, error) from error

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Everything read in the block is of one moment, whatever other processes commit meanwhile."""
        try:
            self._connection.session.execute(_SNAPSHOT, prepare=False)
            yield
        except psycopg.Error as error:
            raise translate_error(self.path, error) from error
        finally:
            self._connection.rollback()

    def close(self) -> None:
        """End the session."""
        self._connection.close()


# Whoever reads may be slow at what it does with it, and nobody waits for it.
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = 0"
_STAMP = "SELECT CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS text) AS bigint)"
_asked: dict[str, PostgresConnection] = {}
"""One session for each server that is asked for changes again and again."""


def stamp(path: ServerPath) -> tuple[int, int, int] | None:
    """The number of the server's next transaction; None while it cannot be asked."""
    try:
        if path.url not in _asked:
            _asked[path.url] = PostgresConnection(connect(path, is_read_only=True))
            atexit.register(_asked[path.url].close)
        [number] = _asked[path.url].execute(_STAMP).fetchone()
    except (psycopg.Error, StorageError):
        if (connection := _asked.pop(path.url, None)) is not None:
            atexit.unregister(connection.close)
            connection.close()
        return None
    return number, 0, 0


_OLDEST_SERVER = 15
_CROWDED_FROM = 0.8
"""The share of its connections above which a server is likely to run out of them."""


@dataclass(frozen=True, slots=True)
class ServerUse:
    """How a server is used."""

    version: str
    connections: int
    """Of all programs."""
    most_connections: int
    """Without those that are reserved for superusers."""
    held: int
    """Threads whose lease is renewed."""
    lost: int
    """Threads whose holder was killed or cut off: the next process takes them over."""

    @property
    def summary(self) -> str:
        """All of it in one line."""
        lost = f" and {self.lost} left by processes that are gone" if self.lost else ""
        used = f"{self.connections} of {self.most_connections} connections in use"
        return f"PostgreSQL {self.version}, {used}, {format_count(self.held, 'thread')} held{lost}"

    @property
    def advice(self) -> str:
        """What to do about it; empty if it is fine."""
        if int(self.version.partition(".")[0]) < _OLDEST_SERVER:
            return f"use PostgreSQL {_OLDEST_SERVER} or later"
        if self.connections > _CROWDED_FROM * self.most_connections:
            return "raise max_connections there, or run fewer tasks at a time: see docs/scale-out.md"
        return ""


_USE = """
SELECT split_part(current_setting('server_version'), ' ', 1),
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
    CAST(current_setting('max_connections') AS bigint)
        - CAST(current_setting('superuser_reserved_connections') AS bigint),
    count(*) FILTER (WHERE expires_at >= clock_timestamp()), count(*) FILTER (WHERE expires_at < clock_timestamp())
FROM leases WHERE ended_at IS NULL
"""


def server_use(path: ServerPath) -> ServerUse:
    """How the server is used, this connection included; the tables have to be there.

    Raises:
        StorageError: the server cannot be used.
    """
    with closing(connect(path, is_read_only=True)) as session:
        try:
            [row] = session.execute(_USE).fetchall()
        except psycopg.Error as error:
            raise translate_error(path, error) from error
        return ServerUse(*row)


class WorkNotices:
    """Listens, on a session of its own, for added, retried and cancelled tasks and for answered questions."""

    def __init__(self, path: ServerPath) -> None:
        """Connect.

        Raises:
            StorageError: the server cannot be reached.
        """
        self._session = connect(path)
        try:
            self._session.execute("LISTEN graph_agent_work")
            self._descriptor = self._session.fileno()
        except psycopg.Error as error:
            self._session.close()
            raise translate_error(path, error) from error

    def fileno(self) -> int:
        """The descriptor that can be read from when something was heard, or the session was lost."""
        return self._descriptor

    def take(self) -> bool:
        """Take what was heard; False if the session was lost, and nothing more will be."""
        try:
            self._session.pgconn.consume_input()
            while self._session.pgconn.notifies() is not None:
                continue
        except psycopg.Error:
            return False
        return True

    def close(self) -> None:
        """End the session."""
        self._session.close()


def _storable(parameters: Values) -> Values:
    """Names that are not UTF-8, as the shell may give them, are stored with question marks in place of it."""
    if isinstance(parameters, Mapping):
        return {name: storable(one) if isinstance(one, str) else one for name, one in parameters.items()}
    return [storable(one) if isinstance(one, str) else one for one in parameters]
