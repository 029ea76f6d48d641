"""Checks a database and copies it, beside other processes. Changes nothing in it."""

import os
import sqlite3
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from graph_agent.config.paths import special_file_kind
from graph_agent.errors import DamagedDatabase, NewerSchema, StorageError, UsageError
from graph_agent.storage.private_files import draft_file
from graph_agent.storage.sqlite.database_file import (
    APPLICATION_ID,
    connect_read_only,
    has_content,
    has_locks,
    read_header,
    refuse_foreign_log,
    require_file,
)
from graph_agent.storage.sqlite.errors import UNREADABLE, translate_error
from graph_agent.storage.sqlite.migrations import SCHEMA_VERSION
from graph_agent.storage.sqlite.schema import table_names, tables_of_version
from graph_agent.storage.sqlite.search_index import has_search_index

__all__ = ["SQLITE_VERSION", "Health", "back_up", "check_database", "require_own_database"]

SQLITE_VERSION = sqlite3.sqlite_version
"""Of the library in use."""


@dataclass(frozen=True, slots=True)
class Health:
    """A sound database."""

    version: int
    threads: int
    foreign_tables: tuple[str, ...]
    """Tables that are none of this program's. They are left alone."""
    has_search_index: bool
    """Whether this SQLite can search by an index; without FTS5 every message is scanned."""


def check_database(path: Path) -> Health | None:
    """The facts about a sound database; None where there is none yet.

    Raises:
        DamagedDatabase: it is torn, or not one of this program.
        NewerSchema: a newer version of the program wrote it.
        StorageError: it cannot be opened.
    """
    if not has_content(path) and not path.exists():
        return None
    try:
        with closing(connect_read_only(path)) as database:
            identity = int(database.execute("PRAGMA application_id").fetchone()[0])
            version = int(database.execute("PRAGMA user_version").fetchone()[0])
            if identity != APPLICATION_ID:
                refuse_foreign_log(path)
                raise DamagedDatabase(f"{path} is no database of this program.")
            if version > SCHEMA_VERSION:
                raise NewerSchema(
                    f"{path} has schema {version}, written by a newer version; this one knows {SCHEMA_VERSION}. "
                    "Update it."
                )
            # Not quick_check: where a table without rowid names its key's columns in another order than its own, as
            # "pruned_checkpoints" does, SQLite 3.40 has that complain of a NULL in every row.
            found = [str(row[0]) for row in database.execute("PRAGMA integrity_check(3)")]
            can_search = has_search_index(database)
            ours, there = tables_of_version(version), table_names(database)
            if missing := ours - there:
                raise DamagedDatabase(f"{path} lacks the tables {', '.join(sorted(missing))}.")
            threads = int(database.execute("SELECT count(*) FROM threads").fetchone()[0])
    except sqlite3.OperationalError as error:
        raise translate_error(path, error) from error
    except UNREADABLE as error:
        raise DamagedDatabase(f"{path} cannot be read: {error}") from error
    if found != ["ok"]:
        raise DamagedDatabase(f"{path} is damaged: {'; '.join(found)}")
    return Health(version, threads, tuple(sorted(there - ours)), can_search)


def require_own_database(path: Path) -> None:
    """Refuse a file that this program did not make: not even its permissions may be changed.

    A file whose beginning is torn counts as ours where the locks beside it show that threads were kept in it.

    Raises:
        StorageError: it is no plain file, or one of another program.
    """
    require_file(path)
    if not path.exists() or has_locks(path):
        return
    header = read_header(path)
    if path.stat().st_size and (header is None or header.application_id != APPLICATION_ID):
        raise StorageError(f"{path} is no database of this program and is left as it is; name another with --db.")


def back_up(path: Path, target: Path) -> int:
    """Copy the database as it is at one moment, while others may write; returns the bytes of the copy.

    The copy is private, checked, and on the disk when this returns; killed before, it does not have its name.

    Raises:
        UsageError: there is no database, or the target exists or cannot be written.
        StorageError: it cannot be read, or there is no room for the copy.
    """
    if not path.exists():
        raise UsageError(f"{path} does not exist: there is nothing to copy")
    if kind := special_file_kind(path):
        raise UsageError(f"{path} is {kind}, not a file: there is nothing to copy")
    if os.path.lexists(target):
        raise UsageError(f"{target} exists; name a file that does not")
    with ExitStack() as stack:
        try:
            draft = stack.enter_context(draft_file(target))
        except OSError as error:
            raise UsageError(f"{target} cannot be written: {error.strerror}") from error
        try:
            with closing(connect_read_only(path)) as source, closing(sqlite3.connect(draft)) as copy:
                source.backup(copy)
                # The copy is one file: no log beside it that could be left behind.
                copy.execute("PRAGMA journal_mode = DELETE")
                if copy.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
                    raise DamagedDatabase(f"{path} is damaged; no copy was left, as it would be as damaged")
            stack.close()
        except (sqlite3.Error, OSError) as error:
            raise StorageError(f"{path} could not be copied: {error}; no copy was left") from error
    return target.stat().st_size
