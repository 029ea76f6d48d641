"""The database file from outside: whose it is, whether it is whole, and whether the log beside it is its own.

Also what errors of SQLite and the operating system mean, as messages that a user can act on.

A write-ahead log whose database is missing or another one is refused: SQLite itself would delete the one, and write
the other into a file it does not belong to.
"""

import errno
import os
import sqlite3
import threading
from collections import OrderedDict
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from graph_agent.config.paths import blob_dir, lock_dir, special_file_kind
from graph_agent.errors import AgentError, DamagedDatabase, InternalError, StorageError

__all__ = [
    "APPLICATION_ID",
    "BUSY_TIMEOUT_S",
    "REMEDY",
    "REMEDY_IF_EMPTY",
    "UNREADABLE",
    "Header",
    "connect_read_only",
    "has_content",
    "has_locks",
    "is_busy",
    "is_own_database",
    "log_of",
    "read_header",
    "refuse_foreign_log",
    "require_file",
    "require_whole",
    "trace_of_threads",
    "translate_error",
]

APPLICATION_ID = 0x47414754
"""`PRAGMA application_id` of our databases: "GAGT"."""
REMEDY = "`graph-agent doctor --repair` copies what is readable, or restore a backup, or name another with --db"
"""What to do about a damaged file."""
REMEDY_IF_EMPTY = "restore a backup, or move it away to start again, or name another with --db"
"""What to do about an empty file without a log, which could still hold something to copy."""

BUSY_TIMEOUT_S = 30.0
"""How long a statement waits for other processes."""

UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError)
"""How damage shows: a complaint may quote a name out of a torn schema that is no text."""

_OURS = (
    sqlite3.IntegrityError,
    sqlite3.ProgrammingError,
    sqlite3.InterfaceError,
    sqlite3.NotSupportedError,
    sqlite3.DataError,
)
_FULL = "the disk is full or a size limit was reached. Free some space, then continue: nothing acknowledged is lost"
_READ_ONLY = (
    "it cannot be written; check the owner and permissions of the file and its folder, or name another with --db"
)
_DAMAGED = "it is damaged or not a database. Restore a backup, or try `graph-agent doctor --repair`"

_BY_SQLITE_CODE: dict[int, tuple[type[StorageError], str]] = {
    sqlite3.SQLITE_FULL: (StorageError, _FULL),
    sqlite3.SQLITE_IOERR: (StorageError, f"reading or writing failed: {_FULL}"),
    sqlite3.SQLITE_READONLY: (StorageError, _READ_ONLY),
    sqlite3.SQLITE_CANTOPEN: (StorageError, _READ_ONLY),
    sqlite3.SQLITE_PERM: (StorageError, _READ_ONLY),
    sqlite3.SQLITE_AUTH: (StorageError, _READ_ONLY),
    sqlite3.SQLITE_CORRUPT: (DamagedDatabase, _DAMAGED),
    sqlite3.SQLITE_NOTADB: (DamagedDatabase, _DAMAGED),
    sqlite3.SQLITE_BUSY: (
        StorageError,
        f"another process has kept it busy for {BUSY_TIMEOUT_S:.0f} seconds. Find it with `fuser`, then try again",
    ),
}
_BY_ERRNO = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: _FULL,
    errno.EROFS: _READ_ONLY,
    errno.EACCES: _READ_ONLY,
    errno.EPERM: _READ_ONLY,
}


def is_busy(error: Exception) -> bool:
    """Whether another process merely keeps the file busy."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def translate_error(path: Path, error: sqlite3.Error | OSError | UnicodeDecodeError) -> AgentError:
    """The exception to raise instead: it names the file, the problem and what to do."""
    if isinstance(error, OSError):
        advice = _BY_ERRNO.get(error.errno or 0, "check the path, or name another with --db")
        return StorageError(f"cannot use {str(error.filename or path)!r} ({error.strerror}): {advice}")
    if isinstance(error, UnicodeDecodeError):
        return DamagedDatabase(f"cannot use the database {str(path)!r} ({error}): {_DAMAGED}")
    if isinstance(error, _OURS):
        return InternalError(f"a statement on {str(path)!r} broke a rule of the schema: {error}")
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    kind, advice = _BY_SQLITE_CODE.get(code, (StorageError, "check the file, or name another with --db"))
    return kind(f"cannot use the database {str(path)!r} ({error}): {advice}")


_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100


class Header(NamedTuple):
    """What the first 100 bytes say (https://www.sqlite.org/fileformat.html, 1.3)."""

    application_id: int
    is_wal: bool
    promised_bytes: int
    """Size that the file ought to have; 0 where the header was not kept up to date."""


def read_header(path: Path) -> Header | None:
    """The header of a file; None where it is no database, or its header is damaged."""
    raw = os.pread(_kept_descriptor(path), _HEADER_BYTES, 0)
    if len(raw) < _HEADER_BYTES or not raw.startswith(_MAGIC):
        return None
    number = int.from_bytes
    page = number(raw[16:18], "big")
    promised = (65536 if page == 1 else page) * number(raw[28:32], "big") if raw[24:28] == raw[92:96] else 0
    return Header(number(raw[68:72], "big"), raw[18:20] == b"\x02\x02", promised)


_kept: OrderedDict[tuple[int, int], int] = OrderedDict()
"""Descriptors by device and inode, the least recently used first."""
_keeping = threading.Lock()
_MAX_KEPT = 64
"""More databases than one process ever has open."""


def _kept_descriptor(path: Path) -> int:
    """A descriptor of the file that stays open.

    Closing any descriptor of a file drops all POSIX locks of the process on it, also those of SQLite's connections:
    another process would then take the database for unused, and delete the write-ahead log under this one
    (https://www.sqlite.org/howtocorrupt.html, 2.2).
    """
    with _keeping:
        status = path.stat()
        identity = (status.st_dev, status.st_ino)
        if identity not in _kept:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            opened = os.fstat(descriptor)
            # Between the two calls another file may have taken the name.
            identity = (opened.st_dev, opened.st_ino)
            if identity in _kept:
                _superfluous.append(descriptor)
            else:
                _kept[identity] = descriptor
        _kept.move_to_end(identity)
        if len(_kept) > _MAX_KEPT:
            os.close(_kept.popitem(last=False)[1])
        return _kept[identity]


_superfluous: list[int] = []
"""Further descriptors of a kept file, which must not be closed either."""


def is_own_database(path: Path) -> bool:
    """Whether a file says of itself, in its raw header, that it is a database of this program."""
    try:
        header = None if special_file_kind(path) else read_header(path)
    except OSError:
        return False
    return header is not None and header.application_id == APPLICATION_ID


def log_of(path: Path) -> Path | None:
    """The write-ahead log beside a database; None where there is none, or an empty one."""
    log = path.with_name(f"{path.name}-wal")
    return log if log.exists() and log.stat().st_size > 0 else None


def has_locks(path: Path) -> bool:
    """Whether there are thread locks beside a database, so that threads were kept in it."""
    return any(lock_dir(path).glob("[0-9a-f]*.lock"))


def trace_of_threads(path: Path) -> Path | None:
    """What beside a database shows that threads were kept in it: locks or contents; None if nothing does.

    Another process may be creating the database at this moment. It makes these only after the tables are committed:
    who saw no tables, and then a trace, looks for the tables once more before it calls the file damaged.
    """
    if has_locks(path):
        return lock_dir(path)
    contents = blob_dir(path)
    if any(file for kind in ("objects", "spool") for file in (contents / kind).glob("*/*")):
        return contents
    return None


def require_file(path: Path) -> None:
    """Refuse what is no plain file.

    Raises:
        StorageError: it is a folder, a pipe or a device.
    """
    if kind := special_file_kind(path):
        raise StorageError(f"{path} is {kind}, not a file; name the database file with --db or GRAPH_AGENT_DB.")


def has_content(path: Path) -> bool:
    """Whether there is a file that is not empty.

    Raises:
        StorageError: it is no plain file.
        DamagedDatabase: it is gone, though its log is there; or empty, though threads were kept in it.
    """
    require_file(path)
    if not path.exists():
        # A file that is being created now has its log later than its first page: it is looked at again.
        if (log := log_of(path)) and not path.exists():
            raise DamagedDatabase(
                f"{path} is gone, though its log {log} holds what was written last; nothing was changed. "
                "Restore the file, or remove the log too to start again."
            )
        return path.exists() and path.stat().st_size > 0
    if path.stat().st_size == 0:
        if (trace := trace_of_threads(path) or log_of(path)) and path.stat().st_size == 0:
            remedy = REMEDY if log_of(path) else REMEDY_IF_EMPTY
            raise DamagedDatabase(f"{path} is empty, though threads were kept in it, as {trace} shows; {remedy}.")
        return path.stat().st_size > 0
    return True


def require_whole(path: Path) -> None:
    """Refuse a file that lacks pages at its end, which SQLite notices only when it reads one of them.

    A log beside the file may hold the missing pages; a process that opens the file meanwhile writes through one.

    Raises:
        DamagedDatabase: it is shorter than its header promises.
    """
    header = None if log_of(path) else read_header(path)
    size = path.stat().st_size
    if header is not None and size < header.promised_bytes and not log_of(path):
        raise DamagedDatabase(
            f"{path} is damaged: it has {size} bytes where its header promises {header.promised_bytes}; {REMEDY}."
        )


def connect_read_only(path: Path, *, is_immutable: bool = False) -> sqlite3.Connection:
    """A connection through which nothing can be written; an immutable file leaves nothing beside it, either."""
    option = "mode=ro&immutable=1" if is_immutable else "mode=ro"
    uri = f"{path.absolute().as_uri()}?{option}"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None)


def refuse_foreign_log(path: Path) -> None:
    """Refuse a database of ours that has another one's log beside it.

    Raises:
        DamagedDatabase: read with the log beside it, it is another one.
    """
    log = log_of(path)
    if log is None or not is_own_database(path):
        return
    # Opened for reading only, nothing of the log is written into the file.
    with closing(connect_read_only(path)) as database:
        identity = database.execute("PRAGMA application_id").fetchone()[0]
    if identity != APPLICATION_ID:
        raise DamagedDatabase(f"{path} has the log of another database beside it: move {log} away.")
