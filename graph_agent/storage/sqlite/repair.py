"""Salvages a damaged database, and rebuilds a thread's tables from its checkpoints.

The readable rows are copied into a new file, by their place in the table and without any index, because an
index is what is most often damaged. The new file replaces the damaged one, which is kept, only when it is
complete and checked.
"""

import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from graph_agent.errors import DamagedDatabase, StorageError
from graph_agent.ports.stored_text import json_text
from graph_agent.storage import Connection
from graph_agent.storage.private_files import create_private_file, sync_file, sync_folder
from graph_agent.storage.sqlite.database_file import (
    APPLICATION_ID,
    UNREADABLE,
    connect_read_only,
    log_of,
    read_header,
)
from graph_agent.storage.sqlite.deltas import count_turns
from graph_agent.storage.sqlite.migrations import SCHEMA_VERSION
from graph_agent.storage.sqlite.projections import Projections
from graph_agent.storage.sqlite.schema import (
    closest_version,
    create_database,
    create_tables,
    has_own_tables,
    require_matching_version,
    table_names,
)
from graph_agent.storage.sqlite.thread_lock import exclusive_access

__all__ = ["ReadableRows", "SalvageResult", "rebuild_thread", "salvage"]

_HIGHEST = 2**62
"""Beyond any number a row has."""

Row = tuple[Any, ...]


class ReadableRows:
    """The rows of a table that can be read. Iterated once; afterwards `lost` says how many could not.

    Rows come in the order of their numbers, each behind its number; those of a table without numbers as they are.
    """

    def __init__(self, source: sqlite3.Connection, table: str, columns: Sequence[str], keys: Sequence[str]) -> None:
        self.is_whole = True
        """False once something could not be read."""
        self._source = source
        self._table = table
        self._columns = ", ".join(columns)
        self._keys = keys
        self._taken = 0

    def __iter__(self) -> Iterator[Row]:
        for row in self._from_both_ends() if self._keys else self._by_number():
            self._taken += 1
            yield row

    @property
    def lost(self) -> int | None:
        """How many rows could not be read; None where nothing shows how many there were."""
        if self.is_whole:
            return 0
        try:
            # Counted in the smallest index, which may be readable where the table is not.
            [count] = self._source.execute(f"SELECT count(*) FROM {self._table}").fetchone()  # noqa: S608 - a name
        except UNREADABLE:
            return None
        return max(int(count) - self._taken, 0) or None

    def _by_number(self) -> Iterator[Row]:
        after: int | None = -1
        while after is not None:
            start = last = after
            try:
                for row in self._rows("rowid > ? ORDER BY rowid", last):
                    last = row[0]
                    yield row
                after = None
            except UNREADABLE:
                self.is_whole = False
                # One that can be read by itself and not in passing is stepped over.
                after = self._next_place(last if last > start else last + 1)

    def _next_place(self, after: int) -> int | None:
        """The number before the next row that can be read; None where there is none."""
        step = 1
        while not self._is_readable(after + step):
            step *= 2
            if after + step > _HIGHEST:
                return None
        low, high = after + step // 2, after + step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._is_readable(middle) else (middle, high)
        return high - 1

    def _is_readable(self, number: int) -> bool:
        """Whether the first row from this number on can be read; also where there is none."""
        try:
            list(self._rows("rowid >= ? ORDER BY rowid LIMIT 1", number))
        except UNREADABLE:
            return False
        return True

    def _rows(self, condition: str, number: int) -> Iterator[Row]:
        yield from self._source.execute(
            f"SELECT rowid, {self._columns} FROM {self._table} NOT INDEXED WHERE {condition}",  # noqa: S608 - names only
            (number,),
        )

    def _from_both_ends(self) -> Iterator[Row]:
        seen: set[Row] = set()
        for order in ("ASC", "DESC"):
            ordered = ", ".join(f"{key} {order}" for key in self._keys)
            try:
                for row in self._source.execute(f"SELECT {self._columns} FROM {self._table} ORDER BY {ordered}"):  # noqa: S608 - names only
                    if row in seen:
                        break
                    seen.add(row)
                    yield row
            except UNREADABLE:
                self.is_whole = False
            if self.is_whole:
                break


_BESIDE = ("-wal", "-shm")
_DERIVED = {"search_entries", "search_removals", "searched", "unsearched"}
"""Tables of the search index, which is built again."""


@dataclass(frozen=True, slots=True)
class SalvageResult:
    """What became of a damaged database."""

    original: Path
    """Where it is now, with its log beside it, as it was."""
    rows: int
    """How many were copied."""
    lost: dict[str, int | None]
    """Rows that could not be copied, by table; None where their number is unknown."""


def salvage(path: Path) -> SalvageResult:
    """Replace a damaged file with a sound one that holds everything that can be read.

    Raises:
        ThreadHeld: another process works with it.
        DamagedDatabase: nothing of it can be read; it is left as it was.
        StorageError: there is no room for the new file; the old one is left as it was.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    draft, original = (path.with_name(f"{path.name}.{end}") for end in (f"{stamp}.draft", f"damaged-{stamp}"))
    with exclusive_access(path):
        for left in path.parent.glob(f"{path.name}.*.draft*"):
            left.unlink()  # Of a process that was killed while it salvaged.
        try:
            rows, lost = _copy_or_restore(path, draft)
            _keep(path, original)
            for end in _BESIDE:
                # A log beside the new file would be taken for its own.
                path.with_name(f"{path.name}{end}").unlink(missing_ok=True)
            draft.replace(path)
            sync_folder(path.parent)
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            raise StorageError(f"{path} could not be salvaged: {error}; it was left as it is") from error
        finally:
            for left in path.parent.glob(f"{draft.name}*"):
                left.unlink()
    return SalvageResult(original, rows, lost)


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


def _copy_or_restore(path: Path, draft: Path) -> tuple[int, dict[str, int | None]]:
    """Copy what can be read, if need be from a copy of the file that has its schema back."""
    if not path.exists():
        raise DamagedDatabase(f"the log of {path} is incomplete without the file; put it back, or restore a backup")
    damage = DamagedDatabase(f"the log of {path} is incomplete without the file; restore a backup")
    if path.stat().st_size or not log_of(path):  # Else SQLite would delete the log.
        try:
            return _copy(path, draft)
        except DamagedDatabase as error:
            damage = error
            draft.unlink(missing_ok=True)
    restored = draft.with_name(f"{draft.name}.restored")
    if not _restore_schema(path, restored):
        raise damage
    try:
        return _copy(restored, draft)
    except DamagedDatabase:
        raise damage from None


_BTREE_HEADER = 100
"""Where the content of the first page begins, behind the header of the file."""
_VALID_FOR = 92
"""Where the header says for which version of the file the size that it names is valid."""


def _restore_schema(path: Path, target: Path) -> bool:
    """Copy the file with its log written into it and the lost pages of the schema; whether that is possible.

    In a database that this version created, these pages are the same as in a new one; one that is left shows it.
    """
    _copy_with_log(path, target)
    fresh = target.with_name(f"{target.name}.new")
    fresh.touch()
    create_database(fresh, SCHEMA_VERSION)
    header = read_header(fresh)
    pages = dict(_schema_pages(fresh.read_bytes()))
    size = len(pages[1])
    with target.open("r+b") as file:
        is_same = {}
        for number, page in pages.items():
            start = _BTREE_HEADER if number == 1 else 0
            file.seek((number - 1) * size)
            is_same[number] = file.read(size)[start:] == page[start:]
        if header is None or not any(is_same.values()):
            return False
        for number in (number for number, same in is_same.items() if not same):
            file.seek((number - 1) * size)
            file.write(pages[number])
        if not is_same[1]:
            file.seek(_VALID_FOR)
            file.write(bytes(4))
    return True


def _schema_pages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The pages of the schema by number (https://www.sqlite.org/fileformat.html, 1.6)."""
    size = int.from_bytes(data[16:18], "big")
    first = data[:size]
    yield 1, first
    [kind] = first[_BTREE_HEADER : _BTREE_HEADER + 1]
    if kind != 5:  # A single leaf.
        return
    cells = int.from_bytes(first[_BTREE_HEADER + 3 : _BTREE_HEADER + 5], "big")
    places = [int.from_bytes(first[112 + 2 * n : 114 + 2 * n], "big") for n in range(cells)]
    for place in (*places, _BTREE_HEADER + 8):
        number = int.from_bytes(first[place : place + 4], "big")
        yield number, data[(number - 1) * size : number * size]


def _copy_with_log(path: Path, target: Path) -> None:
    """Copy a file, and write what its log holds into the copy as far as that is readable."""
    create_private_file(target)
    shutil.copyfile(path, target)
    log = log_of(path)
    if log is None:
        return
    beside = target.with_name(f"{target.name}-wal")
    create_private_file(beside)
    shutil.copyfile(log, beside)
    if not target.stat().st_size:
        target.write_bytes(bytes(4096))  # SQLite deletes the log of an empty file.
    with closing(sqlite3.connect(target, isolation_level=None)) as copy, suppress(*UNREADABLE):
        copy.execute("PRAGMA writable_schema=ON")
        copy.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _copy(path: Path, target: Path) -> tuple[int, dict[str, int | None]]:
    """Copy what can be read into a new file; how many rows, and those lost by table."""
    create_private_file(target)
    with closing(connect_read_only(path)) as source, closing(sqlite3.connect(target, isolation_level=None)) as copy:
        # Else one whose end is cut off is refused whole, as its header promises more pages. Nothing is written.
        source.execute("PRAGMA writable_schema=ON")
        source.text_factory = lambda raw: raw.decode("utf-8", "replace")
        version, tables = _outline(path, source)
        copy.execute("PRAGMA auto_vacuum=INCREMENTAL")
        copy.execute(f"PRAGMA application_id={APPLICATION_ID}")
        create_tables(copy, version)
        wanted = sorted(table_names(copy) - _DERIVED)
        copy.execute("BEGIN")
        taken = {table: _take(source, copy, table) for table in wanted if table in tables}
        copy.execute("COMMIT")
        if copy.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
            raise DamagedDatabase(f"what could be read of {path} makes no sound file; it was left as it is")
    sync_file(target)
    lost: dict[str, int | None] = {table: None for table in wanted if table not in tables}
    lost |= {table: missing for table, (_, missing) in taken.items() if missing != 0}
    return sum(rows for rows, _ in taken.values()), lost


def _outline(path: Path, source: sqlite3.Connection) -> tuple[int, frozenset[str]]:
    """The schema version of a damaged database, and its tables."""
    try:
        identity = source.execute("PRAGMA application_id").fetchone()[0]
        version = int(source.execute("PRAGMA user_version").fetchone()[0])
        tables = table_names(source)
    except UNREADABLE as error:
        backups = ", ".join(map(str, sorted(path.parent.glob(f"{path.name}.*backup"))))
        raise DamagedDatabase(
            f"nothing can be read of {path} ({error}); restore a backup, such as one of "
            f"{backups or 'those made by `doctor --backup FILE`'}"
        ) from error
    if not tables:
        raise DamagedDatabase(f"{path} is empty: nothing can be copied; restore a backup, or move it away")
    if (identity != APPLICATION_ID and not has_own_tables(source)) or version > SCHEMA_VERSION:
        raise DamagedDatabase(f"{path} is no database of this version of the program; it was left as it is")
    try:
        require_matching_version(path, source)
    except DamagedDatabase:
        version = closest_version(source)
    return max(version, 1), tables


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


_EDGES = """
SELECT c.checkpoint_id, coalesce(
    (SELECT branch FROM branches b WHERE b.thread_id = c.thread_id AND b.checkpoint_id = c.checkpoint_id),
    (SELECT branch FROM prune_points p WHERE p.thread_id = c.thread_id AND p.checkpoint_id = c.checkpoint_id), 0)
FROM checkpoints c WHERE c.thread_id = ? AND c.checkpoint_ns = '' AND c.parent_checkpoint_id IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM checkpoints p WHERE p.thread_id = c.thread_id AND p.checkpoint_ns = ''
        AND p.checkpoint_id = c.parent_checkpoint_id)
"""
_DERIVED_REBUILDING = """
thread_id = :thread_id AND checkpoint_id NOT IN (SELECT value FROM json_each(:edges)) AND checkpoint_id IN (
    SELECT checkpoint_id FROM checkpoints WHERE thread_id = :thread_id AND checkpoint_ns = '')
"""
_LOGGED = """
SELECT thread_id, call_id, seq, tool_name, status, risk, record, checkpoint_id, updated_at,
    status NOT IN ('success', 'error', 'cancelled') FROM call_log WHERE thread_id = ?
"""
_PUT_BACK = """
INSERT OR IGNORE INTO call_log
    (thread_id, call_id, seq, tool_name, status, risk, record, checkpoint_id, updated_at, abandoned)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_SAID = "SELECT message_id, role, body, checkpoint_id, at FROM transcript WHERE thread_id = ? ORDER BY seq"
_KNOWN = "SELECT message_id FROM transcript WHERE thread_id = ?"
# Shown on no branch that the head comes from.
_APART = """
INSERT INTO branches (thread_id, branch, parent_branch, from_seq, checkpoint_id, at)
SELECT ?1, 1 + max((SELECT coalesce(max(branch), 0) FROM branches WHERE thread_id = ?1),
    (SELECT coalesce(max(branch), 0) FROM transcript WHERE thread_id = ?1)), 0, 0, ?2, ?3
"""
_PUT_APART = """
INSERT INTO transcript (thread_id, seq, branch, message_id, role, body, checkpoint_id, at)
SELECT ?1, (SELECT coalesce(max(seq), 0) + 1 FROM transcript WHERE thread_id = ?1),
    (SELECT max(branch) FROM branches WHERE thread_id = ?1), ?2, ?3, ?4, ?5, ?6
"""
_LOSE_CALLS = """
UPDATE call_log SET abandoned = 1 WHERE thread_id = ? AND status NOT IN ('success', 'error', 'cancelled')
"""
_ONLY_IN_JOURNAL = """
INSERT INTO call_log (thread_id, call_id, seq, tool_name, status, record, checkpoint_id, updated_at, abandoned)
SELECT thread_id, call_id,
    (SELECT coalesce(max(seq), 0) FROM call_log WHERE thread_id = ?1)
        + row_number() OVER (ORDER BY started_at, call_id),
    ?2, status, json_object('call_id', call_id, 'tool_name', ?2, 'arguments', json('{}'), 'status', status,
        'attempt', attempt, 'started_at', started_at, 'ended_at', at),
    coalesce((SELECT checkpoint_id FROM threads WHERE thread_id = ?1), ''), at,
    CASE WHEN status = 'interrupted' THEN 1 ELSE 0 END
FROM (SELECT thread_id, call_id, max(attempt) AS attempt, min(started_at) AS started_at,
        max(coalesce(ended_at, started_at)) AS at,
        coalesce(max(CASE WHEN status IN ('success', 'error') THEN status END), 'interrupted') AS status
    FROM journal j WHERE thread_id = ?1 AND NOT EXISTS (
        SELECT 1 FROM call_log l WHERE l.thread_id = j.thread_id AND l.call_id = j.call_id)
    GROUP BY thread_id, call_id) f
"""
_ONLY_IN_TRANSCRIPT = """
INSERT OR IGNORE INTO call_log
    (thread_id, call_id, seq, tool_name, status, record, checkpoint_id, updated_at, abandoned)
SELECT thread_id, id,
    (SELECT coalesce(max(seq), 0) FROM call_log WHERE thread_id = ?1) + row_number() OVER (ORDER BY number, key),
    name, status, json_object('call_id', id, 'tool_name', name, 'arguments', json(coalesce(args, '{}')),
        'status', status), checkpoint_id, at, CASE WHEN status = 'interrupted' THEN 1 ELSE 0 END
FROM (SELECT t.thread_id, t.seq AS number, c.key, t.checkpoint_id, t.at, json_extract(c.value, '$.id') AS id,
        json_extract(c.value, '$.name') AS name, json_extract(c.value, '$.args') AS args,
        coalesce((SELECT status FROM journal j WHERE j.thread_id = t.thread_id AND status IN ('success', 'error')
            AND j.call_id = json_extract(c.value, '$.id')), 'interrupted') AS status
    FROM transcript t JOIN json_each(t.body, '$.tool_calls') c
    WHERE t.thread_id = ?1 AND t.role = 'assistant' AND json_valid(t.body)
        AND json_type(c.value, '$.id') = 'text' AND json_type(c.value, '$.name') = 'text') f
WHERE NOT EXISTS (SELECT 1 FROM call_log l WHERE l.thread_id = f.thread_id AND l.call_id = f.id)
"""
_ONLY_IN_CALL_LOG = """
INSERT OR IGNORE INTO journal (thread_id, call_id, attempt, owner, status, started_at, ended_at, outcome)
SELECT thread_id, call_id, coalesce(CAST(json_extract(record, '$.attempt') AS INTEGER), 1), 'call log', status,
    json_extract(record, '$.started_at'), json_extract(record, '$.ended_at'),
    json_object('status', status, 'error', json_extract(record, '$.error_msg'), 'output', coalesce(
        json_extract(record, '$.result'), (SELECT json_extract(body, '$.content') FROM transcript t
            WHERE t.thread_id = l.thread_id AND role = 'tool' AND json_valid(body)
            AND json_extract(body, '$.tool_call_id') = call_id AND json_type(body, '$.content') = 'text'), ''))
FROM call_log l WHERE thread_id = ? AND status IN ('success', 'error') AND json_valid(record)
    AND json_extract(record, '$.started_at') IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM journal j WHERE j.thread_id = l.thread_id AND j.call_id = l.call_id)
"""
_LOST_NAME = "(lost)"
"""In place of the tool of a call of which nothing is left but what the journal knows."""
_ANY = "SELECT 1 FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''"
_LIST_AGAIN = """
INSERT OR IGNORE INTO threads (thread_id, title, created_at, updated_at)
SELECT ?1, coalesce((SELECT substr(json_extract(body, '$.content'), 1, 80) FROM transcript
        WHERE thread_id = ?1 AND role = 'user' AND json_valid(body) AND json_type(body, '$.content') = 'text'
        ORDER BY seq LIMIT 1), ''), min(at), max(at)
FROM (SELECT at FROM transcript WHERE thread_id = ?1
    UNION ALL SELECT started_at FROM journal WHERE thread_id = ?1) f
HAVING min(at) IS NOT NULL
"""
_FORGOTTEN_BRANCHES = """
INSERT INTO branches (thread_id, branch, parent_branch, from_seq, checkpoint_id, at)
SELECT thread_id, branch, 0, 0, min(checkpoint_id), min(at) FROM transcript t
WHERE thread_id = ? AND branch > 0 AND NOT EXISTS (
    SELECT 1 FROM branches b WHERE b.thread_id = t.thread_id AND b.branch = t.branch) GROUP BY thread_id, branch
"""
_MOVE_BRANCHES = """
UPDATE branches SET from_seq = (
    SELECT count(*) FROM transcript t WHERE t.thread_id = branches.thread_id AND t.seq <= from_seq)
WHERE thread_id = ?
"""
_RESET = """
UPDATE threads SET checkpoint_id = NULL, next_nodes = '[]', outcome = '', usage = NULL, branch = 0, turns = 0
WHERE thread_id = ?
"""


def rebuild_thread(connection: Connection, thread_id: str, projections: Projections) -> None:
    """Derive list entry, transcript, branches and call log again; what the user set (title, mode, ...) stays."""
    edges: dict[str, int] = dict(connection.execute(_EDGES, (thread_id,)).fetchall())
    logged = connection.execute(_LOGGED, (thread_id,)).fetchall()
    said = connection.execute(_SAID, (thread_id,)).fetchall()
    named = {"thread_id": thread_id, "edges": json_text(list(edges))}
    has_checkpoints = bool(connection.execute(_ANY, (thread_id,)).fetchone())
    if has_checkpoints:
        # Where ancestors are gone, nothing shows whether all that was written about a call is left: its records are
        # laid over what is there.
        for table in ("transcript", "branches", *(() if edges else ("call_log",))):
            condition = _DERIVED_REBUILDING if edges else "thread_id = :thread_id"
            connection.execute(f"DELETE FROM {table} WHERE {condition}", named)  # noqa: S608 - names only
    else:
        connection.execute(_LIST_AGAIN, (thread_id,))
        connection.execute(_LOSE_CALLS, (thread_id,))
        _close_gaps(connection, thread_id)
    connection.execute(_RESET, (thread_id,))
    for stored in projections.stored(connection, thread_id):
        branch = edges.get(str(stored.checkpoint["id"]))
        if branch is None:
            projections.fold(connection, stored)
        else:
            projections.fold_without_ancestors(connection, stored, branch)
    count_turns(connection, thread_id)
    # Messages and calls stay, even if every checkpoint that showed them is lost.
    connection.executemany(_PUT_BACK, logged)
    if not has_checkpoints:
        connection.execute(_ONLY_IN_TRANSCRIPT, (thread_id,))
    connection.execute(_ONLY_IN_JOURNAL, (thread_id, _LOST_NAME))
    connection.execute(_ONLY_IN_CALL_LOG, (thread_id,))
    _restore_on_hidden_branch(connection, thread_id, said)


def _close_gaps(connection: Connection, thread_id: str) -> None:
    """Number what is left of a transcript anew: a gap shows that messages were lost and not reported yet."""
    connection.execute(_FORGOTTEN_BRANCHES, (thread_id,))
    connection.execute(_MOVE_BRANCHES, (thread_id,))
    numbers = connection.execute("SELECT seq FROM transcript WHERE thread_id = ? ORDER BY seq", (thread_id,))
    for number, (former,) in enumerate(numbers.fetchall(), 1):
        connection.execute(
            "UPDATE transcript SET seq = ? WHERE thread_id = ? AND seq = ?", (number, thread_id, former)
        )


def _restore_on_hidden_branch(connection: Connection, thread_id: str, said: Sequence[Row]) -> None:
    """Restore messages that no checkpoint holds any more, on a branch that the head does not show."""
    known = {message_id for (message_id,) in connection.execute(_KNOWN, (thread_id,))}
    lost = [row for row in said if row[0] not in known]
    if lost:
        connection.execute(_APART, (thread_id, *lost[0][3:]))
        connection.executemany(_PUT_APART, [(thread_id, *row) for row in {one[0]: one for one in lost}.values()])
