"""Opens the database file: checks that it is ours, undamaged and not newer, and migrates it.

The application id is written before the file is switched to WAL, so that the raw header identifies it without
running anything of it; a file of another program is refused untouched. A write-ahead log whose database is
missing or another one is refused too: SQLite itself would delete the one, and write the other into a file it
does not belong to.
"""

import os
import sqlite3
import stat
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from graph_agent.config.paths import lock_dir, special_file_kind
from graph_agent.errors import DamagedDatabase, NewerSchema, StorageError
from graph_agent.storage.private_files import (
    APPLICATION_ID,
    create_private_file,
    draft_file,
    exclusive_lock,
    is_own_database,
    make_private_folder,
)
from graph_agent.storage.sqlite.errors import BUSY_TIMEOUT_S, UNREADABLE
from graph_agent.storage.sqlite.migrations import SCHEMA_VERSION, Migration, load_migrations

__all__ = [
    "create_tables",
    "open_connection",
    "refuse_foreign_log",
    "refuse_orphaned_log",
    "table_names",
    "tables_of_version",
]


def refuse_orphaned_log(path: Path) -> None:
    """Of a database that is not there.

    Raises:
        DamagedDatabase: it was there, and its log holds what was acknowledged last.
    """
    if log := _log_of(path):
        raise DamagedDatabase(
            f"{str(path)!r} is gone, though its log {str(log)!r} holds what was written last; put the file back "
            "beside it, or remove the log too to begin anew"
        )


def refuse_foreign_log(path: Path) -> None:
    """Of a database of ours.

    Raises:
        DamagedDatabase: read with the log beside it, it is another one's.
    """
    log = _log_of(path)
    if log is None or not is_own_database(path):
        return
    # Opened for reading only, nothing of the log is written into the file.
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
        identity = database.execute("PRAGMA application_id").fetchone()[0]
    if identity != APPLICATION_ID:
        raise DamagedDatabase(f"{str(path)!r} has the log of another database beside it: move {str(log)!r} away")


def _log_of(path: Path) -> Path | None:
    log = path.with_name(f"{path.name}-wal")
    return log if log.exists() and log.stat().st_size > 0 else None


_MAGIC = b"SQLite format 3\x00"
_INCREMENTAL = 2
_ADVICE = "put back a backup, or name another with --db"


class _Header(NamedTuple):
    application_id: int
    expected_bytes: int
    """Size the file ought to have; 0 where the header does not say."""


def open_connection(path: Path, migrations: Sequence[Migration] | None = None) -> sqlite3.Connection:
    """Open the file, created and brought up to the last migration where needed.

    Raises:
        DamagedDatabase: not a database, torn, or not one of ours; it is left as it was.
        NewerSchema: written by a newer version; it is left as it was.
        sqlite3.Error, OSError: for the caller to translate.
    """
    make_private_folder(path.parent)
    header = _read_header(path)
    _require_ours(path, header)
    refuse_foreign_log(path)
    if header is not None and header.application_id == APPLICATION_ID:
        connection = _connect(path)
        with _closed_unless_used(connection) as used:
            if _is_current(path, connection, SCHEMA_VERSION if migrations is None else len(migrations)):
                return used()
    make_private_folder(lock_dir(path))
    with exclusive_lock(lock_dir(path) / "open.lock"):
        create_private_file(path)
        connection = _connect(path)
        with _closed_unless_used(connection) as used:
            _bring_up(path, connection, load_migrations() if migrations is None else migrations)
            return used()


@contextmanager
def _closed_unless_used(connection: sqlite3.Connection) -> Iterator[Callable[[], sqlite3.Connection]]:
    with ExitStack() as stack:
        stack.callback(connection.close)

        def used() -> sqlite3.Connection:
            stack.pop_all()
            return connection

        yield used


def _read_header(path: Path) -> _Header | None:
    """What the first 100 bytes say; None where there is no file yet, or an empty one."""
    if not path.exists():
        refuse_orphaned_log(path)
        return None
    if kind := special_file_kind(path):
        raise StorageError(f"{str(path)!r} is {kind}, not a file; name the database file with --db")
    with path.open("rb") as file:
        raw = file.read(100)
    if not raw:
        if any(lock_dir(path).glob("[0-9a-f]*.lock")):
            raise DamagedDatabase(f"{str(path)!r} is empty, though threads were kept in it; {_ADVICE}")
        return None
    if len(raw) < 100 or not raw.startswith(_MAGIC):
        raise DamagedDatabase(f"{str(path)!r} is not a database, or its beginning is torn; {_ADVICE}")
    page_bytes, change_count, pages = struct.unpack(">H6xII", raw[16:32])[0], *struct.unpack(">II", raw[24:32])
    counted_at = struct.unpack(">I", raw[92:96])[0]
    size = (65536 if page_bytes == 1 else page_bytes) * pages if change_count == counted_at else 0
    return _Header(struct.unpack(">I", raw[68:72])[0], size)


def _require_ours(path: Path, header: _Header | None) -> None:
    if header is None:
        return
    if header.application_id not in (0, APPLICATION_ID) or (header.application_id == 0 and _has_tables(path)):
        raise DamagedDatabase(_foreign(path))
    log = path.with_name(f"{path.name}-wal")
    has_log = log.exists() and log.stat().st_size > 0
    # With a write-ahead log beside it a short file may be whole: the rest stands in the log.
    if not has_log and path.stat().st_size < header.expected_bytes:
        raise DamagedDatabase(
            f"{str(path)!r} is torn: {path.stat().st_size} bytes where its header promises "
            f"{header.expected_bytes}; {_ADVICE}"
        )


def _has_tables(path: Path) -> bool:
    """Looked at in a way that leaves nothing beside the file; what stands in a log beside it does not count."""
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        return connection.execute("SELECT 1 FROM sqlite_master").fetchone() is not None
    except UNREADABLE:
        return False  # Opening it for writing reports what is wrong with it.
    finally:
        connection.close()


def _foreign(path: Path) -> str:
    return (
        f"{str(path)!r} is a database of another program, and nothing is written to it; name another with --db. "
        "One of LangGraph's SQLite saver can be looked into with inspect, history, diff and graph"
    )


def _open_companions(path: Path) -> None:
    """Let the owner write what SQLite keeps beside a file that they may write.

    It makes those with the file's rights of the moment: reading one that is write-protected leaves ones that are.
    """
    for end in ("-wal", "-shm"):
        companion = path.with_name(f"{path.name}{end}")
        with suppress(OSError):
            status = companion.lstat()
            is_closed = stat.S_ISREG(status.st_mode) and not status.st_mode & stat.S_IWUSR
            if is_closed and status.st_uid == os.geteuid() and path.stat().st_mode & stat.S_IWUSR:
                companion.chmod(stat.S_IMODE(status.st_mode) | stat.S_IWUSR)


def _connect(path: Path) -> sqlite3.Connection:
    _open_companions(path)
    # mode=rw: SQLite itself would create the file with the umask's permissions
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
        # Of two threads one at a time works with it: `Database` sees to that.
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
            f"{str(path)!r} has schema version {version}, this program knows up to {newest}; "
            "update the program, or name another database with --db"
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
            raise DamagedDatabase(_foreign(path))
        # Only before anything is in the file; later it takes a rewriting of the whole.
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    connection.execute("PRAGMA journal_mode=WAL")
    if _is_current(path, connection, len(migrations)):
        return
    version = _pragma(connection, "user_version")
    if version:
        _back_up(path, connection, version)
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


def _back_up(path: Path, connection: sqlite3.Connection, version: int) -> None:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    for left in path.parent.glob(f"{path.name}.v*.backup.*.draft*"):
        left.unlink()  # Of a process that was killed over it; this one has the lock.
    target = path.with_name(f"{path.name}.v{version}-{stamp}.backup")
    with draft_file(target) as draft, closing(sqlite3.connect(draft)) as copy:
        connection.backup(copy)


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


def tables_of_version(version: int) -> frozenset[str]:
    """The tables that a database of this schema version has."""
    with closing(sqlite3.connect(":memory:")) as model:
        create_tables(model, version)
        return table_names(model)


def create_tables(connection: sqlite3.Connection, version: int) -> None:
    """Give an empty database the tables of a version, without any row."""
    for migration in load_migrations()[:version]:
        connection.executescript(migration.sql)
    connection.execute(f"PRAGMA user_version={version}")
