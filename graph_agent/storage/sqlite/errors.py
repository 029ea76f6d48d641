"""Translates errors of SQLite and the operating system into messages that a user can act on."""

import errno
import sqlite3
from pathlib import Path

from graph_agent.errors import AgentError, DamagedDatabase, InternalError, StorageError

__all__ = ["BUSY_TIMEOUT_S", "UNREADABLE", "is_busy", "translate_error"]

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
