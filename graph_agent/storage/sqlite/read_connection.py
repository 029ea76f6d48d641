"""The database file, opened for reading only: it works beside a process that writes, and never changes the file."""

import sqlite3
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from graph_agent.config.paths import special_file_kind
from graph_agent.errors import DamagedDatabase, InternalError, NewerSchema, NothingYet, StorageError
from graph_agent.storage.json_text import storable
from graph_agent.storage.private_files import APPLICATION_ID
from graph_agent.storage.sqlite.errors import BUSY_TIMEOUT_S, UNREADABLE
from graph_agent.storage.sqlite.migrations import SCHEMA_VERSION
from graph_agent.storage.sqlite.views import create_foreign_views, create_legacy_views

__all__ = ["ReadConnection"]

_PLAIN_NAMES_SINCE = 13
"""The schema version that gave tables and columns their present names."""


class ReadConnection:
    """A connection that can only read. Rows are tuples, in the order of the columns asked for."""

    def __init__(self, path: Path, connection: sqlite3.Connection, note: str = "") -> None:
        self.path = path
        self.note = note
        """What a reader ought to know of how the file was opened."""
        self.is_foreign = False
        """Whether another program wrote it, so that it holds checkpoints and nothing else."""
        self.is_legacy = False
        """Whether an earlier version wrote it: then tables are views, which have no index."""
        self._connection = connection

    @classmethod
    def open(cls, path: Path) -> "ReadConnection":
        """Open a file of this program, of any schema version up to its own, or one of LangGraph's SQLite saver.

        Raises:
            NothingYet: there is no file, or a first opening has not got as far as the schema.
            NewerSchema: a newer version of the program wrote it.
            DamagedDatabase: it is not a database of this program, or torn.
            StorageError: it cannot be opened.
        """
        try:
            _require_whole(path)
            connection, note = _connect(path)
        except OSError as error:
            raise StorageError(f"{path} cannot be read ({error.strerror}); check who may read it.") from error
        database = cls(path, connection, note)
        try:
            database._identify()
        except BaseException:
            database.close()
            raise
        return database

    def rows(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of one SELECT.

        Raises:
            DamagedDatabase: a page or a table is missing or torn.
            StorageError: the file cannot be read now.
        """
        return list(self.stream(sql, parameters))

    def stream(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> Generator[tuple[Any, ...]]:
        """The rows of one SELECT one by one; what is not asked for is not computed. Fails as `rows` does."""
        try:
            # No `yield from`: that would close the cursor, too, perhaps after the connection, and fail at it.
            for row in self._execute(sql, parameters):  # noqa: UP028 - as above
                yield row
        except sqlite3.ProgrammingError as error:
            raise InternalError(f"{self.path} was read after it was closed ({error})") from error
        except UNREADABLE as error:
            raise _read_error(self.path, error) from error

    def _execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any]) -> sqlite3.Cursor:
        try:
            return self._connection.execute(sql, parameters)
        except UnicodeEncodeError:
            # A name that is not UTF-8, as the shell may give it, is stored with question marks in its place.
            if isinstance(parameters, Mapping):
                return self._connection.execute(sql, {name: _storable(one) for name, one in parameters.items()})
            return self._connection.execute(sql, [_storable(one) for one in parameters])

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Everything read in the block is of one moment, whatever other processes commit meanwhile."""
        self.rows("BEGIN")
        try:
            yield
        finally:
            self._connection.rollback()

    def close(self) -> None:
        """Give the file back."""
        self._connection.close()

    def _identify(self) -> None:
        [(application,)] = self.rows("PRAGMA application_id")
        [(version,)] = self.rows("PRAGMA user_version")
        [(tables,)] = self.rows("SELECT count(*) FROM sqlite_schema")
        if not tables and application in (0, APPLICATION_ID):
            raise _nothing_yet(self.path)
        if application != APPLICATION_ID:
            self._adopt_foreign()
            return
        if self.note:
            raise StorageError(self.note)
        if version > SCHEMA_VERSION:
            raise NewerSchema(
                f"{self.path} has schema version {version}, this program reads up to {SCHEMA_VERSION}; "
                "update graph-agent to open it."
            )
        if version < _PLAIN_NAMES_SINCE:
            with self._translated_errors():
                create_legacy_views(self._connection)
            self.is_legacy = True

    def _adopt_foreign(self) -> None:
        with self._translated_errors():
            self.is_foreign = create_foreign_views(self._connection)
        if not self.is_foreign:
            raise DamagedDatabase(
                f"{self.path} is an SQLite file, but neither graph-agent nor LangGraph's SQLite saver wrote it "
                "(that one has the tables checkpoints and writes); name another with --db or GRAPH_AGENT_DB."
            )

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except UNREADABLE as error:
            raise _read_error(self.path, error) from error


def _storable(value: Any) -> Any:
    return storable(value) if isinstance(value, str) else value


def _require_whole(path: Path) -> None:
    if kind := special_file_kind(path):
        raise StorageError(f"{path} is {kind}, not a file; name the database file with --db or GRAPH_AGENT_DB.")
    if not path.exists() or (path.is_file() and path.stat().st_size == 0):
        if path.exists() and any(path.with_name(f"{path.name}.locks").glob("[0-9a-f]*.lock")):
            raise DamagedDatabase(
                f"{path} is empty, though threads were kept in it; nothing was changed. "
                "Put back a backup, or name another with --db."
            )
        if not path.exists() and _has_log(path):
            raise DamagedDatabase(
                f"{path} is gone, though its log {path}-wal holds what was written last; nothing was changed. "
                "Put the file back beside it, or remove the log too to begin anew."
            )
        raise _nothing_yet(path)
    if _is_cut_short(path):
        raise DamagedDatabase(
            f"{path} is damaged (it ends before its last page); nothing was changed. "
            "Put back a backup, or name another with --db."
        )


def _is_cut_short(path: Path) -> bool:
    """Whether pages are missing at the end, which SQLite notices only when it comes to read one of them.

    Judged from the header (https://www.sqlite.org/fileformat.html, 1.3), and only where no log beside the file may
    hold the missing pages.
    """
    if _has_log(path):
        return False
    with path.open("rb") as file:
        header = file.read(100)
    if len(header) < 100 or header[24:28] != header[92:96]:
        return False  # The size in the header is not kept up to date by whoever wrote it.
    page = int.from_bytes(header[16:18], "big")
    expected = (65536 if page == 1 else page) * int.from_bytes(header[28:32], "big")
    # Looked at again: who opened the file meanwhile writes through its log.
    return path.stat().st_size < expected and not _has_log(path)


def _has_log(path: Path) -> bool:
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def _connect(path: Path) -> tuple[sqlite3.Connection, str]:
    """A connection, and what is wrong with it where it is the second best."""
    try:
        return _connected(path, "mode=ro&immutable=1" if _is_left_alone(path) else "mode=ro"), ""
    except UNREADABLE as error:
        if _code(error) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise _read_error(path, error) from error
        failure = error
    # Without its -wal and -shm files, a database in a folder that may not be written opens only as immutable. That
    # is sound exactly then: nobody can be writing to it. What a log beside it holds is not seen that way.
    try:
        connection = _connected(path, "mode=ro&immutable=1")
    except UNREADABLE as error:
        raise _read_error(path, error) from error
    note = (
        f"{path} cannot be read together with the log beside it, {path.name}-wal ({failure}); what stands in that "
        "log is missing. Copy the files to a folder you may write, and name the copy with --db."
    )
    return connection, note if _has_log(path) else ""


def _is_left_alone(path: Path) -> bool:
    """Whether another program's file is in WAL mode and nobody has it open: then reading it must leave nothing."""
    with path.open("rb") as file:
        header = file.read(100)
    is_ours = int.from_bytes(header[68:72], "big") == APPLICATION_ID
    return not is_ours and header[18:20] == b"\x02\x02" and not path.with_name(f"{path.name}-wal").exists()


def _connected(path: Path, option: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{option}", uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None
    )
    try:
        connection.execute("PRAGMA query_only = 1")
        connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _code(error: sqlite3.DatabaseError | UnicodeDecodeError) -> int:
    # Text that is no UTF-8 is complained about by Python's module, without a code.
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF


def _nothing_yet(path: Path) -> NothingYet:
    return NothingYet(f"there is nothing yet: no database at {path}. `graph-agent chat` starts the first thread.")


def _read_error(path: Path, error: sqlite3.DatabaseError | UnicodeDecodeError) -> StorageError:
    match _code(error):
        case sqlite3.SQLITE_NOTADB:
            return DamagedDatabase(f"{path} is not a database; name another file with --db or GRAPH_AGENT_DB.")
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_ERROR:
            return DamagedDatabase(
                f"{path} is damaged ({error}); nothing was changed. Put back a backup, or name another with --db."
            )
        case _:
            return StorageError(f"{path} cannot be read ({error}); check that it is a file you may read.")
