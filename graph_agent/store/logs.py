"""The write-ahead log beside a database that has lost its file, or came from another one. Changes nothing.

SQLite itself would throw the one away, and write the other into a file that it has nothing to do with.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from graph_agent.errors import DamagedDatabase
from graph_agent.store.files import is_ours
from graph_agent.store.migrations import APPLICATION_ID

__all__ = ["require_no_log", "require_own_log"]


def require_no_log(path: Path) -> None:
    """Of a database that is not there.

    Raises:
        DamagedDatabase: it was there, and its log holds what was acknowledged last.
    """
    if log := _log_of(path):
        raise DamagedDatabase(
            f"{str(path)!r} is gone, though its log {str(log)!r} holds what was written last; put the file back "
            "beside it, or remove the log too to begin anew"
        )


def require_own_log(path: Path) -> None:
    """Of a database of ours.

    Raises:
        DamagedDatabase: read with the log beside it, it is another one's.
    """
    log = _log_of(path)
    if log is None or not is_ours(path):
        return
    # Opened for reading only, nothing of the log is written into the file.
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
        identity = database.execute("PRAGMA application_id").fetchone()[0]
    if identity != APPLICATION_ID:
        raise DamagedDatabase(f"{str(path)!r} has the log of another database beside it: move {str(log)!r} away")


def _log_of(path: Path) -> Path | None:
    log = path.with_name(f"{path.name}-wal")
    return log if log.exists() and log.stat().st_size > 0 else None
