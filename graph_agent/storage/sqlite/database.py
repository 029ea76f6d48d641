"""The database: one connection, whose work runs in the order in which it was requested.

Nothing here blocks the event loop on a disk or another process: such work runs on the database's own thread. A
write transaction on the loop's thread that waited for a commit which needs that loop would never end. A few
rows that wait for neither are read or written directly: waking a thread takes longer.
"""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Self, TypeVar, cast

from graph_agent.errors import InternalError, StorageError
from graph_agent.storage import Connection
from graph_agent.storage.sqlite.checkpoint_rows import BrokenCheckpoint, explain_damage
from graph_agent.storage.sqlite.database_file import BUSY_TIMEOUT_S, is_busy, translate_error
from graph_agent.storage.sqlite.migrations import Migration
from graph_agent.storage.sqlite.schema import open_connection

__all__ = ["Database", "release_free_pages", "transaction"]

T = TypeVar("T")

_FAULTS = (sqlite3.Error, OSError, UnicodeDecodeError)

_BUSY_MS = int(BUSY_TIMEOUT_S * 1000)
_LOG_PAGES = 1000
"""Length of the write-ahead log from which on a commit copies it back into the file; SQLite's own default."""
_SHRINK_WAIT_MS = 500
"""How long readers are waited for before the file is left as long as it is."""


@contextmanager
def _waiting(connection: Connection) -> Iterator[None]:
    """Within the block other processes are waited for, and a commit may copy the log back into the file."""
    connection.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
    connection.execute(f"PRAGMA wal_autocheckpoint={_LOG_PAGES}")
    try:
        yield
    finally:
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("PRAGMA busy_timeout=0")


@contextmanager
def transaction(connection: Connection, *, synced: bool = True) -> Iterator[None]:
    """A write transaction around the block; rolled back when the block raises.

    Not synced, it survives the death of the process at once, and a power failure from the next synced one on.
    """
    if not synced:
        connection.execute("PRAGMA synchronous=NORMAL")
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if not synced:
            connection.execute("PRAGMA synchronous=FULL")


def release_free_pages(connection: Connection) -> None:
    """Shrink the file by its free pages; a file that somebody else is reading shrinks later.

    A server does so by itself.
    """
    if not isinstance(connection, sqlite3.Connection):
        return
    # Not `execute`: that would take one step, which is one page.
    connection.executescript("PRAGMA incremental_vacuum")
    connection.execute(f"PRAGMA busy_timeout={_SHRINK_WAIT_MS}")
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        connection.execute(f"PRAGMA busy_timeout={_BUSY_MS}")


class Database:
    """The database of all threads, a file. Work runs in the order in which it was requested."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._jobs: SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]] | None] = SimpleQueue()
        self._connection: Connection | None = None
        self._file: tuple[int, int] | None = None
        self._pending = 0
        """How many jobs have no outcome yet."""
        self._in_use = threading.Lock()
        self._thread = threading.Thread(target=self._serve, name=f"database {path.name}", daemon=True)

    @classmethod
    async def open(cls, path: Path, migrations: Sequence[Migration] | None = None) -> Self:
        """Open the file, created private and migrated where needed.

        Raises:
            StorageError: it cannot be used (NewerSchema, DamagedDatabase among them); the file is left as it was.
        """
        database = cls(path)

        def connect() -> None:
            connection = open_connection(path, migrations)
            with _waiting(connection):  # Once the database is open, only a job waits for other processes.
                database._connection = connection
            database._file = database._file_identity()

        database._thread.start()
        opened = False
        try:
            await database._submit(connect)
            opened = True
        finally:
            if not opened:
                database._jobs.put(None)
        return database

    async def run(self, work: Callable[[Connection], T]) -> T:
        """Run the work on the database's thread. A cancelled caller waits for it, then raises CancelledError.

        Raises:
            StorageError: SQLite or the disk failed, or the file is no longer the one that was opened.
        """
        connection = self._open_connection()

        def job() -> T:
            self._require_same_file()
            with _waiting(connection):
                return work(connection)

        return await self._submit(job)

    async def write(self, work: Callable[[Connection], T], *, synced: bool = True, thread_id: str = "") -> T:
        """Run the work as one `transaction`: durable when this returns, rolled back when the work raises."""
        return await self.run(partial(self._in_transaction, work, synced=synced, thread_id=thread_id))

    async def quick_read(self, work: Callable[[Connection], T]) -> T:
        """As `run`, for what reads a few rows: without a change of threads where nothing is ahead of it.

        The work may be done twice: again on the database's thread, where the file was busy at first.
        """
        connection = self._open_connection()
        if self._pending or not self._in_use.acquire(blocking=False):
            return await self.run(work)
        try:
            self._require_same_file()
            return _without_cursor(work(connection))
        except (BrokenCheckpoint, *_FAULTS) as error:
            if not is_busy(error):
                raise self._explain(error) from error
        finally:
            self._in_use.release()
        return await self.run(work)

    async def rows(self, query: str, values: Sequence[Any] | Mapping[str, Any]) -> list[Any]:
        """The rows of a query that finds a few, as `quick_read`."""
        return await self.quick_read(lambda connection: connection.execute(query, values).fetchall())

    async def quick_write(self, work: Callable[[Connection], T], *, thread_id: str = "") -> T:
        """As `write`, not synced, for what writes a few rows: directly where `quick_read` would do so."""
        return await self.quick_read(partial(self._in_transaction, work, synced=False, thread_id=thread_id))

    def transaction(
        self,
        connection: Connection,
        *,
        synced: bool = True,
        thread_id: str = "",  # noqa: ARG002 - a file has one writer
    ) -> AbstractContextManager[None]:
        """See `transaction`. What only reads and writes rows of one thread names it.

        On a server such transactions of different threads run at the same time; any other one runs alone.
        """
        return transaction(connection, synced=synced)

    async def size(self) -> int:
        """Bytes of the file with its log."""
        parts = (self.path, self.path.with_name(f"{self.path.name}-wal"))
        return await self.run(lambda _: sum(path.stat().st_size for path in parts if path.exists()))

    async def close(self) -> None:
        """Finish what was requested, then close the file; closing twice is harmless."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            await self._submit(connection.close)
        finally:
            self._jobs.put(None)
            self._thread.join()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _open_connection(self) -> Connection:
        if self._connection is None:
            raise InternalError(f"the database {str(self.path)!r} was used after it was closed")
        return self._connection

    def _in_transaction(
        self, work: Callable[[Connection], T], connection: Connection, *, synced: bool, thread_id: str
    ) -> T:
        with self.transaction(connection, synced=synced, thread_id=thread_id):
            return work(connection)

    def _explain(self, error: BaseException) -> BaseException:
        """The error for the caller, with the path and what to do."""
        explained = error
        if isinstance(error, BrokenCheckpoint):
            explained = explain_damage(self.path, self._execute, error)
        elif isinstance(error, _FAULTS):
            explained = translate_error(self.path, error)
        if explained is not error:
            explained.__cause__ = error
        return explained

    def _execute(self, sql: str, values: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
        return self._open_connection().execute(sql, values)

    def _file_identity(self) -> tuple[int, int] | None:
        """Distinguishes the file from others that may take its name; None where there is none."""
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _require_same_file(self) -> None:
        """SQLite keeps writing to a file that has no name any more, and nobody would ever read it."""
        if self._file_identity() != self._file:
            raise StorageError(
                f"the database {str(self.path)!r} was removed or replaced while this process used it. "
                "Restore the right file, then continue; until then nothing is written, as it would be lost"
            )

    async def _submit(self, work: Callable[[], T]) -> T:
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._pending += 1
        future.add_done_callback(self._on_done)
        self._jobs.put((work, future))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            # However often this task is cancelled meanwhile, it waits for the work; its outcome is dropped.
            while not future.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait((future,))
            if not future.cancelled():
                future.exception()
            raise

    def _on_done(self, future: "asyncio.Future[Any]") -> None:  # noqa: ARG002 - the future calls it with itself
        self._pending -= 1

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            work, future = job
            result: Any = None
            fault: BaseException | None = None
            with self._in_use:
                try:
                    result = _without_cursor(work())
                except BaseException as error:  # noqa: BLE001 - the boundary of the thread: the caller gets it
                    fault = self._explain(error)
            # A closed loop has nobody left who waits.
            with suppress(RuntimeError):
                future.get_loop().call_soon_threadsafe(_resolve, future, result, fault)
        if self._connection is not None:
            self._connection.close()


def _resolve(future: "asyncio.Future[Any]", result: Any, fault: BaseException | None) -> None:
    """Pass the outcome of a job to its future, on the loop of the caller."""
    if future.done():
        return
    if fault is None:
        future.set_result(result)
    else:
        future.set_exception(fault)


def _without_cursor(result: T) -> T:
    """The result, or None for a cursor, which must not leave this thread.

    Freed on the thread that asked, a cursor resets its statement there, while this one may be binding the same
    cached statement again: SQLite calls that misuse and the write fails.
    """
    if not isinstance(result, sqlite3.Cursor):
        return result
    result.close()
    return cast("T", None)
