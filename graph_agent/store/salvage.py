"""Taking what can still be read of a damaged database over into a new file. The damaged one is kept whole.

Rows are read by their place in the table, without any index, because an index is what is most often damaged. The
new file takes the place of the damaged one only when it is complete and checked.
"""

import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from graph_agent.errors import DamagedDatabase, StorageError
from graph_agent.store.alone import alone_with
from graph_agent.store.faults import UNREADABLE
from graph_agent.store.files import create_private_file, sync_file, sync_folder
from graph_agent.store.migrations import APPLICATION_ID, MIGRATIONS
from graph_agent.store.outline import lay_out, table_names
from graph_agent.store.readable import ReadableRows

__all__ = ["Salvaged", "salvage"]

_BESIDE = ("-wal", "-shm")
_DERIVED = {"searched", "unsearched"}
"""Of the index of words, which is made anew."""


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What became of a damaged database."""

    original: Path
    """Where it stands now, with its log beside it, as it was."""
    rows: int
    """How many were taken over."""
    lost: dict[str, int | None]
    """Rows that could not be, by table; None where it cannot be told how many."""


def salvage(path: Path) -> Salvaged:
    """Put a sound file with all that can be read in the place of a damaged one.

    Raises:
        ThreadHeld: another process works with it.
        DamagedDatabase: nothing of it can be read; it is left as it was.
        StorageError: there is no room for the new file; the old one is left as it was.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    draft, original = (path.with_name(f"{path.name}.{end}") for end in (f"{stamp}.draft", f"damaged-{stamp}"))
    with alone_with(path):
        for left in path.parent.glob(f"{path.name}.*.draft*"):
            left.unlink()  # Of a process that was killed over it.
        try:
            rows, lost = _copy(path, draft)
            _keep(path, original)
            _put_in_place(draft, path)
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            raise StorageError(f"{path} could not be salvaged: {error}; it was left as it is") from error
        finally:
            for end in ("", "-journal", *_BESIDE):
                draft.with_name(f"{draft.name}{end}").unlink(missing_ok=True)
    return Salvaged(original, rows, lost)


def _keep(path: Path, original: Path) -> None:
    """Give the damaged file and its log a second name: there is no moment at which they have none."""
    for end in ("", "-wal"):
        beside, kept = (one.with_name(f"{one.name}{end}") for one in (path, original))
        if not beside.exists() or (end and not beside.stat().st_size):
            continue
        try:
            os.link(beside, kept)
        except OSError:
            # A file system without second names.
            shutil.copy2(beside, kept)
    sync_folder(path.parent)


def _put_in_place(draft: Path, path: Path) -> None:
    for end in _BESIDE:
        # A log beside the new file would be taken for its own.
        path.with_name(f"{path.name}{end}").unlink(missing_ok=True)
    draft.replace(path)
    sync_folder(path.parent)


def _copy(path: Path, target: Path) -> tuple[int, dict[str, int | None]]:
    create_private_file(target)
    with closing(_damaged(path)) as source, closing(sqlite3.connect(target, isolation_level=None)) as copy:
        version, tables = _outline(path, source)
        copy.execute("PRAGMA auto_vacuum=INCREMENTAL")
        copy.execute(f"PRAGMA application_id={APPLICATION_ID}")
        lay_out(copy, version)
        wanted = sorted(table_names(copy) - _DERIVED)
        copy.execute("BEGIN")
        taken = {table: _take(source, copy, table) for table in wanted if table in tables}
        copy.execute("COMMIT")
        if copy.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
            raise DamagedDatabase(f"what could be read of {path} makes no sound file; it was left as it is")
        gone: dict[str, int | None] = {table: None for table in wanted if table not in tables}
    sync_file(target)
    lost = gone | {table: missing for table, (_, missing) in taken.items() if missing != 0}
    return sum(rows for rows, _ in taken.values()), lost


def _damaged(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    # Else one whose end is cut off is refused whole, as its header promises more pages. Nothing is written.
    connection.execute("PRAGMA writable_schema=ON")
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return connection


def _outline(path: Path, source: sqlite3.Connection) -> tuple[int, frozenset[str]]:
    try:
        identity = source.execute("PRAGMA application_id").fetchone()[0]
        version = int(source.execute("PRAGMA user_version").fetchone()[0])
        tables = table_names(source)
    except UNREADABLE as error:
        raise DamagedDatabase(
            f"nothing can be read of {path} ({error}); put back a backup, such as one of {_backups(path)}"
        ) from error
    if identity != APPLICATION_ID or not 1 <= version <= len(MIGRATIONS):
        raise DamagedDatabase(f"{path} is no database of this version of the program; it was left as it is")
    return version, tables


def _backups(path: Path) -> str:
    found = sorted(path.parent.glob(f"{path.name}.*backup"))
    return ", ".join(map(str, found)) or "those made by `doctor --backup FILE`"


def _take(source: sqlite3.Connection, copy: sqlite3.Connection, table: str) -> tuple[int, int | None]:
    """How many rows were taken over, and how many could not be."""
    described = copy.execute(f"PRAGMA table_info({table})").fetchall()
    there = {str(row[1]) for row in source.execute(f"PRAGMA table_info({table})")}
    columns = [str(row[1]) for row in described if row[1] in there]
    keys = [str(row[1]) for row in sorted(described, key=lambda row: row[5]) if row[5]]
    [sql] = copy.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
    has_numbers = "WITHOUT ROWID" not in sql
    found = ReadableRows(source, table, columns, () if has_numbers else keys)
    # A column that is the row's number takes it along.
    is_numbered = has_numbers and not any(row[2] == "INTEGER" and row[5] and len(keys) == 1 for row in described)
    named = ["rowid", *columns] if is_numbered else columns
    insert = f"INSERT OR IGNORE INTO {table} ({', '.join(named)}) VALUES ({', '.join('?' * len(named))})"  # noqa: S608 - names of our own columns
    taken = refused = 0
    for row in found:
        is_taken = copy.execute(insert, row if is_numbered or not has_numbers else row[1:]).rowcount == 1
        taken, refused = taken + is_taken, refused + (not is_taken)
    missing = found.lost
    return taken, None if missing is None else missing + refused
