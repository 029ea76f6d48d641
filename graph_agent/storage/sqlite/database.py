"""The database: one connection, whose work runs in the order in which it was requested.

Nothing here blocks the event loop on a disk or another process: such work runs on the database's own thread. A
write transaction on the loop's thread that waited for a commit which needs that loop would wait for ever. A few
rows that wait for neither are read or written directly: waking a thread takes longer.
"""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self, TypeVar

from graph_agent.errors import InternalError, StorageError
from graph_agent.storage.private_files import file_identity
from graph_agent.storage.sqlite.errors import BUSY_TIMEOUT_S, is_busy, translate_error
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
def _waiting(connection: sqlite3.Connection) -> Iterator[None]:
    """Within the block other processes are waited for, and a commit may copy the log back into the file."""
    connection.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
    connection.execute(f"PRAGMA wal_autocheckpoint={_LOG_PAGES}")
    try:
        yield
    finally:
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("PRAGMA busy_timeout=0")


@contextmanager
def transaction(connection: sqlite3.Connection, *, synced: bool = True) -> Iterator[None]:
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


def release_free_pages(connection: sqlite3.Connection) -> None:
    """Shrink the file by its free pages; a file that somebody else is reading shrinks later."""
    # Not `execute`: that would take one step, which is one page.
    connection.executescript("PRAGMA incremental_vacuum")
    connection.execute(f"PRAGMA busy_timeout={_SHRINK_WAIT_MS}")
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        connection.execute(f"PRAGMA busy_timeout={_BUSY_MS}")


@dataclass(frozen=True, slots=True)
class _Job:
    """A piece of work, and the future on the asking loop that takes its outcome."""

    work: Callable[[], Any]
    future: "asyncio.Future[Any]"

    def resolve(self, result: Any, error: BaseException | None) -> None:
        """Called back on the loop."""
        if self.future.done():
            return
        if error is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(error)


class Database:
    """The database of all threads. Work runs in the order in which it was asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._pending = 0
        """How much of what was asked for is not settled yet."""
        self._in_use = threading.Lock()
        self._thread = threading.Thread(target=self._serve, name=f"database {path.name}", daemon=True)

    @classmethod
    async def open(cls, path: Path, migrations: Sequence[Migration] | None = None) -> Self:
        """Open the file, created private and migrated where needed.

        Raises:
            StorageError: it cannot be used (NewerSchema, DamagedDatabase among them); the file is left as it was.
        """
        database = cls(path)
        database._thread.start()
        opened = False
        try:
            await database._submit(lambda: database._connect(migrations))
            opened = True
        finally:
            if not opened:
                database._jobs.put(None)
        return database

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run the work on the database's thread. A cancelled caller waits for it, then raises CancelledError.

        Raises:
            StorageError: SQLite or the disk failed, or the file is no longer the one that was opened.
        """
        connection = self._opened()

        def in_its_file() -> T:
            self._require_same_file()
            with _waiting(connection):
                return work(connection)

        return await self._submit(in_its_file)

    async def write(self, work: Callable[[sqlite3.Connection], T], *, synced: bool = True) -> T:
        """Run the work as one `transaction`: durable when this returns, undone when the work raises."""

        def in_transaction(connection: sqlite3.Connection) -> T:
            with transaction(connection, synced=synced):
                return work(connection)

        return await self.run(in_transaction)

    async def quick_read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """As `run`, for what reads a few rows: without a change of threads where nothing is ahead of it.

        The work may be done twice: once more on the database's thread, where the file was busy at first.
        """
        at_once = self._directly(work)
        return await self.run(work) if at_once is None else at_once[0]

    async def quick_write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """As `write`, not synced, for what writes a few rows: as `glance` does."""

        def in_transaction(connection: sqlite3.Connection) -> T:
            with transaction(connection, synced=False):
                return work(connection)

        return await self.quick_read(in_transaction)

    async def close(self) -> None:
        """Finish what was asked for, then close the file; closing twice is harmless."""
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

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            raise InternalError(f"the database {str(self.path)!r} was used after it was closed")
        return self._connection

    def _directly(self, work: Callable[[sqlite3.Connection], T]) -> tuple[T] | None:
        """What came of the work; None where it has to wait for its turn, for a lock, or for another process."""
        connection = self._opened()
        if self._pending or not self._in_use.acquire(blocking=False):
            return None
        try:
            self._require_same_file()
            return (_without_cursor(work(connection)),)
        except _FAULTS as error:
            if is_busy(error):
                return None
            raise translate_error(self.path, error) from error
        finally:
            self._in_use.release()

    def _connect(self, migrations: Sequence[Migration] | None) -> None:
        connection = open_connection(self.path, migrations)
        with _waiting(connection):  # and no more of that once it is open
            self._connection = connection
        self._file = file_identity(self.path)

    def _require_same_file(self) -> None:
        """SQLite goes on writing to a file that has no name any more, and nobody would ever read it."""
        if file_identity(self.path) != self._file:
            raise StorageError(
                f"the database {str(self.path)!r} was removed or replaced while this process used it. "
                "Restore the right file, then continue; until then nothing is written, as it would be lost"
            )

    async def _submit(self, work: Callable[[], T]) -> T:
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._pending += 1
        future.add_done_callback(self._on_done)
        self._jobs.put(_Job(work, future))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await _wait_until_done(future)
            raise

    def _on_done(self, future: "asyncio.Future[Any]") -> None:  # noqa: ARG002 - called back by it
        self._pending -= 1

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            with self._in_use:
                result, error = self._attempt(job.work)
            try:
                job.future.get_loop().call_soon_threadsafe(job.resolve, result, error)
            except RuntimeError:
                # The loop that asked is closed: nobody is left to be told.
                continue
        if self._connection is not None:
            self._connection.close()

    def _attempt(self, work: Callable[[], Any]) -> tuple[Any, BaseException | None]:
        try:
            return _without_cursor(work()), None
        except _FAULTS as error:
            fault = translate_error(self.path, error)
            fault.__cause__ = error
            return None, fault
        except BaseException as error:  # noqa: BLE001 - the boundary of the thread: whatever it is belongs to the caller
            return None, error


def _without_cursor(result: Any) -> Any:
    """The result, unless it is a cursor, which must not leave this thread.

    Freed on the thread that asked, a cursor resets its statement there, while this one may be binding the same
    cached statement again: SQLite calls that misuse and the write fails.
    """
    if not isinstance(result, sqlite3.Cursor):
        return result
    result.close()
    return None


async def _wait_until_done(future: "asyncio.Future[Any]") -> None:
    """Wait for the future, however often this task is cancelled meanwhile; its outcome is dropped."""
    while not future.done():
        try:
            await asyncio.wait((future,))
        except asyncio.CancelledError:
            continue
    if not future.cancelled():
        future.exception()
