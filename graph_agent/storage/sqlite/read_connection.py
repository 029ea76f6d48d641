"""The database file, opened for reading only: it works beside a process that writes, and never changes the file."""

import sqlite3
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from graph_agent.errors import DamagedDatabase, InternalError, NewerSchema, NothingYet, StorageError
from graph_agent.ports.stored_text import storable
from graph_agent.storage.sqlite.database_file import (
    APPLICATION_ID,
    REMEDY,
    UNREADABLE,
    connect_read_only,
    has_content,
    log_of,
    read_header,
    require_whole,
    trace_of_threads,
)
from graph_agent.storage.sqlite.migrations import SCHEMA_VERSION

__all__ = ["ReadConnection"]

_PLAIN_NAMES_SINCE = 13
"""The schema version that gave tables and columns their present names."""
_Parameters = Sequence[Any] | Mapping[str, Any]


class ReadConnection:
    """A connection that can only read. Rows are tuples, in the order of the columns asked for."""

    def __init__(self, path: Path, connection: sqlite3.Connection, note: str = "") -> None:
        self.path = path
        self.note = note
        """A limit of what can be read of the file; mostly empty."""
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
            if not has_content(path):
                raise _nothing_yet(path)
            require_whole(path)
            connection, note = _connect(path)
        except OSError as error:
            raise StorageError(f"{path} cannot be read ({error.strerror}); check who may read it.") from error
        database = cls(path, connection, note)
        try:
            database._identify()
        except UNREADABLE as error:
            database.close()
            raise _read_error(path, error) from error
        except BaseException:
            database.close()
            raise
        return database

    def rows(self, sql: str, parameters: _Parameters = ()) -> list[tuple[Any, ...]]:
        """All rows of one SELECT.

        Raises:
            DamagedDatabase: a page or a table is missing or torn.
            StorageError: the file cannot be read now.
        """
        return list(self.stream(sql, parameters))

    def stream(self, sql: str, parameters: _Parameters = ()) -> Generator[tuple[Any, ...]]:
        """The rows of one SELECT one by one; what is not asked for is not computed. Fails as `rows` does."""
        try:
            try:
                cursor = self._connection.execute(sql, parameters)
            except UnicodeEncodeError:
                # A name that is not UTF-8, as the shell may give it, is stored with question marks in its place.
                cursor = self._connection.execute(sql, _storable(parameters))
            except sqlite3.OperationalError:
                if not self._follow_migration():
                    raise
                cursor = self._connection.execute(sql, parameters)
            # No `yield from`: that would close the cursor, too, perhaps after the connection, and fail at it.
            for row in cursor:  # noqa: UP028 - as above
                yield row
        except sqlite3.ProgrammingError as error:
            raise InternalError(f"{self.path} was read after it was closed ({error})") from error
        except UNREADABLE as error:
            raise _read_error(self.path, error) from error

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Everything read in the block is of one moment, whatever other processes commit meanwhile."""
        self.rows("BEGIN")
        try:
            yield
        finally:
            self._connection.rollback()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _follow_migration(self) -> bool:
        """Whether another process migrated the file since it was opened; its tables are then read as they are."""
        [version] = self._connection.execute("PRAGMA user_version").fetchone()
        if not self.is_legacy or version < _PLAIN_NAMES_SINCE:
            return False
        self._connection.execute("PRAGMA query_only = 0")
        for (name,) in self._connection.execute(
            "SELECT name FROM sqlite_temp_schema WHERE type = 'view'"
        ).fetchall():
            self._connection.execute(f"DROP VIEW temp.{name}")
        self._connection.execute("PRAGMA query_only = 1")
        self.is_legacy = False
        return True

    def _identify(self) -> None:
        """Find out which program and version wrote the file, and make it look like a current one."""
        application, version, has_tables = self._identity()
        if not has_tables and application in (0, APPLICATION_ID):
            if not (trace := trace_of_threads(self.path)):
                raise _nothing_yet(self.path)
            application, version, has_tables = self._identity()  # Another process may have created them meanwhile.
            if not has_tables:
                raise DamagedDatabase(
                    f"{self.path} holds no tables, though threads were kept in it, as {trace} shows; {REMEDY}."
                )
        if application != APPLICATION_ID:
            self._view_foreign()
            return
        if self.note:
            raise StorageError(self.note)
        if version > SCHEMA_VERSION:
            raise NewerSchema(
                f"{self.path} has schema version {version}, this program reads up to {SCHEMA_VERSION}; "
                "update graph-agent to open it."
            )
        if version < SCHEMA_VERSION:
            from graph_agent.storage.sqlite.schema import require_matching_version  # noqa: PLC0415 - as above

            require_matching_version(self.path, self._connection)
        if version < _PLAIN_NAMES_SINCE:
            from graph_agent.storage.sqlite.views import create_legacy_views  # noqa: PLC0415 - as above

            create_legacy_views(self._connection)
            self.is_legacy = True
            self._follow_migration()  # It may have ended while the views were made.

    def _identity(self) -> tuple[int, int, bool]:
        """Application id, schema version and whether there are tables, all of one moment."""
        with self.snapshot():
            [(has_tables,)] = self.rows("SELECT EXISTS (SELECT 1 FROM sqlite_schema)")
            [(application,)] = self.rows("PRAGMA application_id")
            [(version,)] = self.rows("PRAGMA user_version")
        return application, version, bool(has_tables)

    def _view_foreign(self) -> None:
        from graph_agent.storage.sqlite.schema import has_own_tables, missing_application_id  # noqa: PLC0415 - most files need no
        from graph_agent.storage.sqlite.views import create_foreign_views  # noqa: PLC0415 - views, nor this check

        if has_own_tables(self._connection):
            raise missing_application_id(self.path)
        self.is_foreign = create_foreign_views(self._connection)
        if not self.is_foreign:
            raise DamagedDatabase(
                f"{self.path} is an SQLite file, but neither graph-agent nor LangGraph's SQLite saver wrote it "
                "(that one has the tables checkpoints and writes); name another with --db or GRAPH_AGENT_DB."
            )


def _storable(parameters: _Parameters) -> _Parameters:
    if isinstance(parameters, Mapping):
        return dict(zip(parameters, _storable(list(parameters.values())), strict=True))
    return [storable(one) if isinstance(one, str) else one for one in parameters]


def _connect(path: Path) -> tuple[sqlite3.Connection, str]:
    """A connection, and a note about what it cannot read."""
    header = read_header(path)
    # Reading another program's file in WAL mode that nobody has open must leave nothing beside it.
    is_foreign_wal = header is not None and header.application_id != APPLICATION_ID and header.is_wal
    is_immutable = is_foreign_wal and not path.with_name(f"{path.name}-wal").exists()
    try:
        return _checked(path, is_immutable=is_immutable), ""
    except UNREADABLE as error:
        if _code(error) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise _read_error(path, error) from error
        failure = error
    # Without its -wal and -shm files, a database in a folder that may not be written opens only as immutable. That
    # is sound exactly then: nobody can be writing to it. What a log beside it holds is not read that way.
    try:
        connection = _checked(path, is_immutable=True)
    except UNREADABLE as error:
        raise _read_error(path, error) from error
    note = (
        f"{path} cannot be read together with the log beside it, {path.name}-wal ({failure}); what that log holds "
        "is missing. Copy the files to a folder you may write, and name the copy with --db."
    )
    return connection, note if log_of(path) else ""


def _checked(path: Path, *, is_immutable: bool) -> sqlite3.Connection:
    connection = connect_read_only(path, is_immutable=is_immutable)
    try:
        connection.execute("PRAGMA query_only = 1")
        connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _code(error: sqlite3.DatabaseError | UnicodeDecodeError) -> int:
    # Text that is no UTF-8 is reported by Python's module, without a code.
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF


def _nothing_yet(path: Path) -> NothingYet:
    return NothingYet(f"there is nothing yet: no database at {path}. `graph-agent chat` starts the first thread.")


def _read_error(path: Path, error: sqlite3.DatabaseError | UnicodeDecodeError) -> StorageError:
    match _code(error):
        case sqlite3.SQLITE_NOTADB:
            if trace_of_threads(path) or log_of(path):
                return DamagedDatabase(f"{path} is not a database, or its header is damaged; {REMEDY}.")
            return DamagedDatabase(f"{path} is not a database; name another file with --db or GRAPH_AGENT_DB.")
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_ERROR:
            return DamagedDatabase(f"{path} is damaged ({error}); {REMEDY}.")
        case _:
            return StorageError(f"{path} cannot be read ({error}); check that it is a file you may read.")
