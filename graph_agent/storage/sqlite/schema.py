"""Opens the database file for writing: checks that it is ours, undamaged and not newer, and migrates it.

The application id is written before the file is switched to WAL, so that the raw header identifies it without
running anything of it; a file of another program is refused untouched.
"""

import os
import sqlite3
import stat
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from graph_agent.config.paths import lock_dir
from graph_agent.errors import DamagedDatabase, NewerSchema
from graph_agent.storage.private_files import create_private_file, draft_file, exclusive_lock, make_private_folder
from graph_agent.storage.sqlite.database_file import (
    APPLICATION_ID,
    BUSY_TIMEOUT_S,
    REMEDY,
    UNREADABLE,
    connect_read_only,
    has_content,
    read_header,
    refuse_foreign_log,
    require_whole,
)
from graph_agent.storage.sqlite.migrations import SCHEMA_VERSION, Migration, load_migrations

__all__ = [
    "closest_version",
    "create_database",
    "create_tables",
    "has_own_tables",
    "missing_application_id",
    "open_connection",
    "require_matching_version",
    "table_names",
    "tables_of_version",
]

_INCREMENTAL = 2


def open_connection(path: Path, migrations: Sequence[Migration] | None = None) -> sqlite3.Connection:
    """Open the file, created and brought up to the last migration where needed.

    Raises:
        DamagedDatabase: not a database, torn, or not one of ours; it is left as it was.
        NewerSchema: written by a newer version; it is left as it was.
        sqlite3.Error, OSError: for the caller to translate.
    """
    make_private_folder(path.parent)
    identity = _require_ours(path)
    refuse_foreign_log(path)
    if identity == APPLICATION_ID:
        with ExitStack() as stack:
            connection = _connect(path)
            stack.callback(connection.close)
            if _is_current(path, connection, SCHEMA_VERSION if migrations is None else len(migrations)):
                stack.pop_all()
                return connection
    make_private_folder(lock_dir(path))
    with exclusive_lock(lock_dir(path) / "open.lock"), ExitStack() as stack:
        create_private_file(path)
        connection = _connect(path)
        stack.callback(connection.close)
        _bring_up(path, connection, load_migrations() if migrations is None else migrations)
        stack.pop_all()
        return connection


def _require_ours(path: Path) -> int | None:
    """The application id in the header; None where there is no file yet, or an empty one."""
    if not has_content(path):
        return None
    header = read_header(path)
    if header is None:
        raise DamagedDatabase(f"{path} is not a database, or its header is damaged; {REMEDY}.")
    if header.application_id not in (0, APPLICATION_ID) or (header.application_id == 0 and _has_tables(path)):
        raise _foreign(path)
    require_whole(path)
    return header.application_id


def _has_tables(path: Path) -> bool:
    """Checked in a way that leaves nothing beside the file; what a log beside it holds does not count."""
    with closing(connect_read_only(path, is_immutable=True)) as connection:
        try:
            return connection.execute("SELECT 1 FROM sqlite_master").fetchone() is not None
        except UNREADABLE:
            return False  # Opening it for writing reports what is wrong with it.


def _foreign(path: Path) -> DamagedDatabase:
    with closing(connect_read_only(path, is_immutable=True)) as connection, suppress(*UNREADABLE):
        if has_own_tables(connection):
            return missing_application_id(path)
    return DamagedDatabase(
        f"{path} is a database of another program, and nothing is written to it; name another with --db. "
        "inspect, history, diff and graph can read one of LangGraph's SQLite saver."
    )


def _connect(path: Path) -> sqlite3.Connection:
    for end in ("-wal", "-shm"):
        # SQLite gives these files the permissions that the database has when it creates them: a reader of a
        # write-protected database leaves write-protected ones behind. The owner gets them back.
        companion = path.with_name(f"{path.name}{end}")
        with suppress(OSError):
            status = companion.lstat()
            is_closed = stat.S_ISREG(status.st_mode) and not status.st_mode & stat.S_IWUSR
            if is_closed and status.st_uid == os.geteuid() and path.stat().st_mode & stat.S_IWUSR:
                companion.chmod(stat.S_IMODE(status.st_mode) | stat.S_IWUSR)
    # mode=rw: SQLite itself would create the file with the umask's permissions. Of two threads one at a time works
    # with the connection: `Database` takes care of that.
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA fullfsync=ON")
    connection.execute("PRAGMA trusted_schema=OFF")
    return connection


def _is_current(path: Path, connection: sqlite3.Connection, newest: int) -> bool:
    version = _pragma(connection, "user_version")
    if version > newest:
        raise NewerSchema(
            f"{path} has schema version {version}, this program knows up to {newest}; "
            "update the program, or name another database with --db."
        )
    if version < newest:
        return False
    # Finds out here, and not in the middle of a turn, that the file cannot be written.
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("ROLLBACK")
    return True


def _bring_up(path: Path, connection: sqlite3.Connection, migrations: Sequence[Migration]) -> None:
    if _pragma(connection, "application_id") != APPLICATION_ID:
        if connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise _foreign(path)
        # Only before anything is in the file; later it takes a rewriting of the whole.
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    connection.execute("PRAGMA journal_mode=WAL")
    if _is_current(path, connection, len(migrations)):
        return
    version = _pragma(connection, "user_version")
    require_matching_version(path, connection)
    if version:
        for left in path.parent.glob(f"{path.name}.v*.backup.*.draft*"):
            left.unlink()  # Of a process that was killed while it wrote it; this one has the lock.
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        target = path.with_name(f"{path.name}.v{version}-{stamp}.backup")
        with draft_file(target) as draft, closing(sqlite3.connect(draft)) as copy:
            connection.backup(copy)
    for number, migration in enumerate(migrations[version:], version + 1):
        if migration.releases_space and _pragma(connection, "auto_vacuum") != _INCREMENTAL:
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            connection.execute("VACUUM")
        _apply(connection, number, migration)


def _apply(connection: sqlite3.Connection, number: int, migration: Migration) -> None:
    try:
        connection.executescript(f"BEGIN IMMEDIATE; {migration.sql}; PRAGMA user_version={number};")
        if migration.fill is not None:
            migration.fill(connection)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value


# The index has tables of its own, whose names begin like it.
_NAMES = """
SELECT name FROM sqlite_schema WHERE type = 'table'
    AND name NOT LIKE 'sqlite@_%' ESCAPE '@' AND name NOT IN ('words', 'search_index')
    AND name NOT LIKE 'words@_%' ESCAPE '@' AND name NOT LIKE 'search@_index@_%' ESCAPE '@'
"""


def table_names(connection: sqlite3.Connection) -> frozenset[str]:
    """The tables that hold rows of somebody."""
    return frozenset(str(name) for (name,) in connection.execute(_NAMES))


@cache
def tables_of_version(version: int) -> frozenset[str]:
    """The tables that a database of this schema version has."""
    with closing(sqlite3.connect(":memory:")) as model:
        create_tables(model, version)
        return table_names(model)


def create_database(path: Path, version: int) -> None:
    """Make a new database of a version, page by page as `open_connection` does."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        _bring_up(path, connection, load_migrations()[:version])


def create_tables(connection: sqlite3.Connection, version: int) -> None:
    """Give an empty database the tables of a version, without any row."""
    for migration in load_migrations()[:version]:
        connection.executescript(migration.sql)
    connection.execute(f"PRAGMA user_version={version}")


_COLUMNS = f"SELECT t.name, c.name FROM ({_NAMES}) t JOIN pragma_table_info(t.name) c"  # noqa: S608 - names of our own
_DISTINCTIVE = {"threads", "journal", "decisions", "leases"}
"""Tables that every version has, and no other program all of them."""

Columns = frozenset[tuple[str, str]]


def has_own_tables(connection: sqlite3.Connection) -> bool:
    """Whether the tables are those of this program, whatever the header says."""
    return table_names(connection) >= _DISTINCTIVE


def missing_application_id(path: Path) -> DamagedDatabase:
    """The error about a database of this program that does not say so in its header."""
    return DamagedDatabase(f"The header of {path} does not contain graph-agent's application id; {REMEDY}.")


def require_matching_version(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse a database whose version is older than its tables: migrating it would fail halfway.

    Raises:
        DamagedDatabase: it has columns that only later versions have.
    """
    # In this order: another process may be migrating it.
    there = _columns_in(connection)
    version = _pragma(connection, "user_version")
    if (_columns_of_version(SCHEMA_VERSION) - _columns_of_version(version)) & there:
        raise DamagedDatabase(
            f"{path} is damaged: it says that it has schema version {version}, but its tables are those of version "
            f"{closest_version(connection)}; {REMEDY}."
        )


def closest_version(connection: sqlite3.Connection) -> int:
    """The version whose tables are most like those of a database; the highest of several."""
    there = _columns_in(connection)
    shapes = {version: _columns_of_version(version) for version in range(1, SCHEMA_VERSION + 1)}
    return max(shapes, key=lambda version: (len(shapes[version] & there) - len(shapes[version] - there), version))


def _columns_in(connection: sqlite3.Connection) -> Columns:
    return frozenset((str(table), str(column)) for table, column in connection.execute(_COLUMNS))


@cache
def _columns_of_version(version: int) -> Columns:
    with closing(sqlite3.connect(":memory:")) as model:
        create_tables(model, max(version, 0))
        return _columns_in(model)
