import errno
import sqlite3
from pathlib import Path

import pytest

from graph_agent.errors import DamagedDatabase, InternalError, StorageError
from graph_agent.storage.sqlite.database_file import translate_error

_PATH = Path("/data/agent.db")


def _error(code: int, kind: type[sqlite3.Error] = sqlite3.OperationalError) -> sqlite3.Error:
    error = kind("words of the library")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("code", "kind", "advice"),
    [
        (sqlite3.SQLITE_FULL, StorageError, "Free some space"),
        (sqlite3.SQLITE_IOERR_WRITE, StorageError, "reading or writing failed"),
        (sqlite3.SQLITE_READONLY_DIRECTORY, StorageError, "check the owner and permissions"),
        (sqlite3.SQLITE_CANTOPEN, StorageError, "check the owner and permissions"),
        (sqlite3.SQLITE_CORRUPT_INDEX, DamagedDatabase, "Restore a backup"),
        (sqlite3.SQLITE_NOTADB, DamagedDatabase, "Restore a backup"),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, StorageError, "busy for 30 seconds"),
        (sqlite3.SQLITE_ERROR, StorageError, "check the file"),
    ],
)
def test_each_code_of_sqlite_has_its_kind_and_advice(code: int, kind: type[StorageError], advice: str) -> None:
    fault = translate_error(_PATH, _error(code))

    assert type(fault) is kind
    assert str(fault).startswith("cannot use the database '/data/agent.db' (words of the library): ")
    assert advice in str(fault)


@pytest.mark.parametrize("kind", [sqlite3.IntegrityError, sqlite3.ProgrammingError])
def test_a_statement_of_ours_that_is_wrong_is_a_bug(kind: type[sqlite3.Error]) -> None:
    assert type(translate_error(_PATH, _error(sqlite3.SQLITE_CONSTRAINT, kind))) is InternalError


@pytest.mark.parametrize(
    ("number", "advice"),
    [(errno.ENOSPC, "Free some space"), (errno.EROFS, "check the owner"), (errno.ENOTDIR, "check the path")],
)
def test_each_error_of_the_kernel_names_the_file_and_what_to_do(number: int, advice: str) -> None:
    fault = translate_error(_PATH, OSError(number, "words of the kernel", "/data/x"))

    assert str(fault).startswith("cannot use '/data/x' (words of the kernel): ")
    assert advice in str(fault)
