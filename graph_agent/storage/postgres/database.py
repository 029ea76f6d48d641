"""The database on a server: one session, whose work runs in the order in which it was requested."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self, TypeVar

import psycopg

from graph_agent.config.paths import ServerPath
from graph_agent.errors import InternalError, StorageError
from graph_agent.storage import Connection
from graph_agent.storage.postgres.connection import PostgresConnection, connect
from graph_agent.storage.postgres.errors import translate_error
from graph_agent.storage.postgres.lease import Leases
from graph_agent.storage.postgres.schema import bring_up
from graph_agent.storage.postgres.translation import SCHEMA, translate_schema
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.migrations import Migration

__all__ = ["PostgresDatabase"]

T = TypeVar("T")

_SIZE = """
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ? AND c.relkind = 'r'
"""
_PAUSES = (0.05, 0.2, 0.5, 1, 2, 4)
"""Seconds between attempts to reach a server that could be reached before."""


class PostgresDatabase(Database):
    """See `Database`. A lost session is opened again, unless it may have written something.

    Every transaction depends on the leases that this process holds.
    """

    path: ServerPath

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        if not isinstance(path, ServerPath):
            raise InternalError(f"{path} is a file")
        self.leases = Leases(path)

    @classmethod
    async def open(cls, path: Path, migrations: Sequence[Migration] | None = None) -> Self:
        """Connect, and create the tables or migrate them where needed.

        Raises:
            StorageError: the server cannot be used (NewerSchema among them); the tables are left as they were.
        """
        database = cls(path)

        def open_session() -> None:
            connection = PostgresConnection(connect(database.path))
            database._connection = connection
            bring_up(database.path, connection, migrations)

        database._thread.start()
        is_open = False
        try:
            await database._submit(open_session)
            is_open = True
        finally:
            if not is_open:
                database._jobs.put(None)
        return database

    @classmethod
    def open_blocking(cls, path: Path, tables: str) -> Self:
        """As `open`, but without a thread of its own: `work_now` blocks its caller, one at a time.

        Args:
            tables: statements that create further tables, unless they exist.

        Raises:
            StorageError: see `open`.
        """
        database = cls(path)
        try:
            database._connection = connection = PostgresConnection(connect(database.path))
            bring_up(database.path, connection)
            with database.transaction(connection):
                for statement in translate_schema(tables):
                    connection.session.execute(statement.encode(), prepare=False)
        except psycopg.Error as error:
            raise database._explain(error) from error
        return database

    def work_now(self, work: Callable[[Connection], T]) -> T:
        """As `run`, on the calling thread."""
        try:
            return self._attempt(work)
        except psycopg.Error as error:
            raise self._explain(error) from error

    def close_now(self) -> None:
        """Close what `open_blocking` opened."""
        self._session().close()

    async def run(self, work: Callable[[Connection], T]) -> T:
        """Run the work on the database's thread. It is done again where the session was lost and nothing written.

        Raises:
            StorageError: the server failed, or cannot be reached.
        """
        self._open_connection()
        return await self._submit(lambda: self._attempt(work))

    async def quick_read(self, work: Callable[[Connection], T]) -> T:
        """As `run`: the event loop does not wait for a network."""
        return await self.run(work)

    @contextmanager
    def transaction(
        self,
        connection: Connection,
        *,
        synced: bool = True,  # noqa: ARG002 - a server may crash alone, and this process would go on without what it lost
        thread_id: str = "",
    ) -> Iterator[None]:
        """See `Database.transaction`; each one is synced."""
        if not isinstance(connection, PostgresConnection):
            raise InternalError("this connection is another database's")
        leases = self.leases.fencing(thread_id)
        try:
            tokens = connection.begin(thread_id, [lease.thread_id for lease in leases])
            self.leases.require(leases, tokens)
            yield
            connection.commit()
        finally:
            connection.rollback()

    async def size(self) -> int:
        """Bytes of all tables with their indexes."""
        rows = await self.rows(_SIZE, (SCHEMA,))
        return int(rows[0][0])

    async def close(self) -> None:
        """See `Database.close`. Leases that are still held end by themselves."""
        await asyncio.to_thread(self.leases.close)
        await super().close()

    def _attempt(self, work: Callable[[Connection], T]) -> T:
        connection = self._session()
        if connection.is_lost:
            connection = self._connect_again()
        connection.is_uncertain = False
        try:
            return work(connection)
        except (psycopg.OperationalError, psycopg.InterfaceError):
            if not connection.is_lost or connection.is_uncertain:
                raise
            connection = self._connect_again()
        return work(connection)

    def _connect_again(self) -> PostgresConnection:
        """A new session, once the server can be reached.

        Raises:
            StorageError: it cannot.
        """
        for pause in _PAUSES:
            try:
                connection = PostgresConnection(connect(self.path))
            except StorageError:
                time.sleep(pause)
            else:
                self._connection = connection
                return connection
        self._connection = connection = PostgresConnection(connect(self.path))
        return connection

    def _session(self) -> PostgresConnection:
        connection = self._open_connection()
        if not isinstance(connection, PostgresConnection):
            raise InternalError("this connection is another database's")
        return connection

    def _explain(self, error: BaseException) -> BaseException:
        if not isinstance(error, psycopg.Error):
            return super()._explain(error)
        explained = translate_error(self.path, error)
        explained.__cause__ = error
        return explained
