"""Checks a database and the rows of this program's own tables, and copies it beside other processes."""

import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, get_args

from graph_agent.calls import STATUSES, Risk
from graph_agent.config.paths import special_file_kind
from graph_agent.errors import DamagedDatabase, NewerSchema, StorageError, UsageError
from graph_agent.events import AnswerKind, TurnStatus
from graph_agent.ports import (
    GrantEffect,
    GrantScope,
    Intent,
    QuestionKind,
    RewindScope,
    RowStatus,
    TaskState,
    normalize_time,
)
from graph_agent.ports.thread_file import TABLES, Column, InvalidValue, encode_value
from graph_agent.storage import refuse_server
from graph_agent.storage.private_files import draft_file
from graph_agent.storage.sqlite.database_file import (
    APPLICATION_ID,
    UNREADABLE,
    connect_read_only,
    has_content,
    has_locks,
    read_header,
    refuse_foreign_log,
    require_file,
    require_whole,
    translate_error,
)
from graph_agent.storage.sqlite.migrations import SCHEMA_VERSION
from graph_agent.storage.sqlite.rewinds import read_rewind
from graph_agent.storage.sqlite.row_values import MODES
from graph_agent.storage.sqlite.schema import (
    has_own_tables,
    missing_application_id,
    require_matching_version,
    table_names,
    tables_of_version,
)
from graph_agent.storage.sqlite.search_index import has_search_index

__all__ = [
    "ONE_OF",
    "SQLITE_VERSION",
    "DamagedRow",
    "Health",
    "back_up",
    "check_database",
    "clean_row",
    "damaged_rows",
    "is_sound",
    "missing_rows",
    "require_own_database",
]

SQLITE_VERSION = sqlite3.sqlite_version
"""Of the library in use."""
_JOURNAL_TABLES = frozenset({"asked_questions", "call_owners"})
"""What the library of durable tool calls adds to a journal of its own."""


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
        require_whole(path)
        with closing(connect_read_only(path)) as database:
            identity = int(database.execute("PRAGMA application_id").fetchone()[0])
            version = int(database.execute("PRAGMA user_version").fetchone()[0])
            if identity != APPLICATION_ID:
                refuse_foreign_log(path)
                is_ours = has_own_tables(database)
                if is_ours:
                    raise missing_application_id(path)
                raise DamagedDatabase(f"{path} is no database of this program")
            if version > SCHEMA_VERSION:
                raise NewerSchema(
                    f"{path} has schema {version}, written by a newer version; this one knows {SCHEMA_VERSION}. "
                    "Update it."
                )
            require_matching_version(path, database)
            # Not quick_check: where a table without rowid names its key's columns in another order than its own, as
            # "pruned_checkpoints" does, SQLite 3.40 has that complain of a NULL in every row.
            found = [str(row[0]) for row in database.execute("PRAGMA integrity_check(3)")]
            can_search = has_search_index(database)
            ours, there = tables_of_version(version), table_names(database)
            if missing := ours - there:
                raise DamagedDatabase(f"{path} lacks the tables {', '.join(sorted(missing))}")
            threads = int(database.execute("SELECT count(*) FROM threads").fetchone()[0])
    except sqlite3.OperationalError as error:
        raise translate_error(path, error) from error
    except UNREADABLE as error:
        raise DamagedDatabase(f"{path} cannot be read: {error}") from error
    if found != ["ok"]:
        raise DamagedDatabase(f"{path} is damaged: {'; '.join(found)}")
    return Health(version, threads, tuple(sorted(there - ours - _JOURNAL_TABLES)), can_search)


def require_own_database(path: Path) -> None:
    """Refuse a file that this program did not make: not even its permissions may be changed.

    A file whose header is damaged counts as ours where the locks beside it show that threads were kept in it.

    Raises:
        StorageError: it is no plain file, or one of another program.
    """
    require_file(path)
    if not path.exists() or has_locks(path):
        return
    header = read_header(path)
    is_ours = header is not None and (header.application_id == APPLICATION_ID or _has_own_tables(path))
    if path.stat().st_size and not is_ours:
        raise StorageError(f"{path} is no database of this program and is left as it is; name another with --db.")


def _has_own_tables(path: Path) -> bool:
    with closing(connect_read_only(path, is_immutable=True)) as database, suppress(*UNREADABLE):
        return has_own_tables(database)
    return False


def back_up(path: Path, target: Path) -> int:
    """Copy the database as it is at one moment, while others may write; returns the bytes of the copy.

    The copy is private, checked, and on the disk when this returns; killed before, it does not have its name.

    Raises:
        UsageError: there is no database, or the target exists or cannot be written.
        StorageError: it cannot be read, or there is no room for the copy.
    """
    refuse_server(path, "doctor --backup")
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


_Values = Mapping[str, Any]


def _is_message(values: _Values) -> bool:
    body = json.loads(values["body"])
    calls = body.get("tool_calls") or []
    return "content" in body and isinstance(calls, list) and all(isinstance(call, dict) for call in calls)


def _is_record(values: _Values) -> bool:
    record = json.loads(values["record"])
    same = all(record[name] == values[name] for name in ("call_id", "tool_name"))
    return same and isinstance(record.get("attempt", 1), int) and isinstance(record.get("arguments", {}), dict)


def _is_attempt(values: _Values) -> bool:
    outcome, intent = (json.loads(values[name] or "null") for name in ("outcome", "intent"))
    if intent is not None:
        Intent(**intent)
    return outcome is None or "blob" in outcome or isinstance(outcome.get("output"), str)


def _is_rewind(values: _Values) -> bool:
    read_rewind((values["id"], "", values["checkpoint_id"], values["head"], values["scope"], values["plan"]))
    return True


def _is_grant(values: _Values) -> bool:
    return all(isinstance(rule["text"], str) for rule in json.loads(values["rules"]))


def _is_task(values: _Values) -> bool:
    options = json.loads(values["options"])
    return isinstance(options["flags"], dict) and bool(normalize_time(values["not_before"]))


_CLOSER: Mapping[str, Callable[[_Values], bool]] = {
    "transcript": _is_message,
    "call_log": _is_record,
    "journal": _is_attempt,
    "rewinds": _is_rewind,
    "grants": _is_grant,
    "tasks": _is_task,
}
"""A closer check of the rows that hold more than plain values."""
ONE_OF: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("threads", "mode"): tuple(mode for mode in MODES if mode != "bypassPermissions"),
    ("threads", "outcome"): ("", "done", "limit", "stopped"),
    ("transcript", "role"): ("user", "assistant", "tool", "system", "summary", "function", "chat"),
    ("call_log", "status"): STATUSES,
    ("call_log", "risk"): ("", *get_args(Risk)),
    ("journal", "status"): get_args(RowStatus),
    ("decisions", "question"): get_args(QuestionKind),
    ("decisions", "kind"): get_args(AnswerKind),
    ("rewinds", "scope"): get_args(RewindScope),
    ("rewinds", "status"): ("planned", "done", "reverted", "imported"),
    ("grants", "scope"): get_args(GrantScope),
    ("grants", "mode"): MODES,
    ("grants", "effect"): get_args(GrantEffect),
    ("tasks", "state"): get_args(TaskState),
    ("tasks", "outcome"): ("", *get_args(TurnStatus)),
}
"""The values that a column may have."""
_OWN: Mapping[str, tuple[Column, ...]] = {
    # Beside what an export holds: what belongs to this machine.
    "threads": (
        Column("add_dirs", "json"),
        Column("model_choice"),
        Column("usage", "json", may_be_null=True),
        Column("agent"),
    ),
    "inbox": (Column("urgent", "number"), Column("early_tokens", "number", may_be_null=True)),
    "journal": (
        Column("process_group", "number", may_be_null=True),
        Column("process_started", may_be_null=True),
        Column("boot_id", may_be_null=True),
    ),
    "decisions": (Column("superseded_at", may_be_null=True), Column("outside_sandbox", "number")),
    "grants": tuple(
        Column(name, "json" if name == "rules" else "text")
        for name in ("scope", "rules", "mode", "workspace", "folder", "effect", "call_id", "by", "at")
    ),
    "leases": (
        *(Column(name) for name in ("owner_token", "process_started", "boot_id", "host", "since")),
        Column("pid", "number"),
        Column("ended_at", may_be_null=True),
    ),
    "background_shells": (
        *(Column(name) for name in ("call_id", "command", "folder", "started_at", "read_by")),
        *(Column(name, "number") for name in ("id", "attempt", "read_from", "read_until")),
        Column("ended_at", may_be_null=True),
        Column("ending", "json", may_be_null=True),
    ),
    "tasks": (
        *(Column(name) for name in ("task_id", "prompt", "workspace", "branch", "state", "outcome", "error")),
        *(Column(name) for name in ("not_before", "added_by", "added_at")),
        *(Column(name, may_be_null=True) for name in ("started_at", "ended_at", "worker")),
        Column("options", "json"),
        Column("every", "number"),
    ),
}
_DERIVED = ("checkpoints", "writes")
_STORED: Mapping[str, tuple[Column, ...]] = {
    table: tuple({column.name: column for column in (*TABLES.get(table, ()), *_OWN.get(table, ()))}.values())
    for table in dict.fromkeys((*TABLES, *_OWN))
    if table not in _DERIVED
}
"""The columns of each table that is checked here; checkpoints have a check of their own."""


class DamagedRow(NamedTuple):
    """A row with invalid values."""

    table: str
    number: int
    thread_id: str
    columns: tuple[str, ...]
    """Those that are invalid; empty if they only contradict each other."""
    values: tuple[str, ...] = ()
    """Of those that have a fixed set of values: what they hold instead."""

    def __str__(self) -> str:
        """As part of a sentence."""
        named = f" ({', '.join(self.columns)})" if self.columns else ""
        held = f" with the value {', '.join(self.values)}" if self.values else ""
        return f"row {self.number} of {self.table}{named}{held}"


def damaged_rows(
    execute: Callable[[str, Sequence[Any]], Any], thread_id: str | None = None
) -> Iterator[DamagedRow]:
    """The rows of a thread, or of all, with invalid values."""
    for table, columns in _STORED.items():
        names = ", ".join(column.name for column in columns)
        number = "0" if table == "pruned_checkpoints" else "rowid"
        statement = f"SELECT {number}, thread_id, {names} FROM {table} WHERE ?1 IS NULL OR thread_id = ?1"  # noqa: S608 - names of our own columns
        for place, thread, *row in execute(statement, (thread_id,)):
            if (invalid := _invalid_columns(table, columns, row)) is not None or not isinstance(thread, str):
                stored = dict(zip((column.name for column in columns), row, strict=True))
                unknown = [stored[name] for name in invalid or () if (table, name) in ONE_OF]
                yield DamagedRow(table, place, str(thread), invalid or (), tuple(f"{one!r:.60}" for one in unknown))


def is_sound(table: str, values: _Values) -> bool:
    """Whether the values of a row, each valid alone, are valid together.

    Raises:
        LookupError, TypeError, ValueError, AttributeError: they are not.
    """
    check = _CLOSER.get(table)
    return check is None or check(values)


def _invalid_columns(table: str, columns: Sequence[Column], row: Sequence[Any]) -> tuple[str, ...] | None:
    """The columns of a row that are invalid; None: the row is sound."""
    invalid = tuple(
        column.name for column, stored in zip(columns, row, strict=True) if not _is_valid(table, column, stored)
    )
    if invalid:
        return invalid
    values = {column.name: stored for column, stored in zip(columns, row, strict=True)}
    try:
        return None if is_sound(table, values) else ()
    except (LookupError, TypeError, ValueError, AttributeError, DamagedDatabase, RecursionError):
        return ()


def _is_valid(table: str, column: Column, stored: Any) -> bool:
    kind = _JSON_KINDS.get(column.name) if column.kind == "json" else None
    try:
        value = encode_value(column, stored)
        if column.name in ("agent", "model_choice"):
            kind, value = dict, json.loads(stored or "{}")
    except (InvalidValue, ValueError, RecursionError):
        return False
    if value is None:
        return True
    if column.kind == "number":
        return value in _NUMBERS.get(column.name, _ANY_NUMBER)
    if kind or column.kind == "json":
        return isinstance(value, kind or dict | list)
    if column.name.endswith("_at") or column.name in ("at", "since"):
        return not value or _TIME.match(value) is not None
    allowed = ONE_OF.get((table, column.name))
    return allowed is None or value in allowed


_JSON_KINDS: Mapping[str, type] = {
    **dict.fromkeys(("add_dirs", "next_nodes", "rules"), list),
    **dict.fromkeys(("args", "body", "ending", "intent", "outcome", "record", "usage"), dict),
}
_ANY_NUMBER = range(2**53)
_FLAG = range(2)
_NUMBERS = {"attempt": range(1, 2**31), "process_group": range(1, 2**31), "pid": range(1, 2**31)}
_NUMBERS |= dict.fromkeys(("reverted", "abandoned", "urgent", "outside_sandbox"), _FLAG)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")


_MAY_BE_EMPTIED = {
    "early_tokens",
    "intent",
    "process_group",
    "process_started",
    "boot_id",
    "ended_at",
    "applied_at",
    "superseded_at",
}
"""Columns that may be empty: without what they held the row still says what it is about."""
_DEFAULTS = {"next_nodes": "[]", "add_dirs": "[]", "mode": "default", "branch": 0, "turns": 0}


def clean_row(execute: Callable[[str, Sequence[Any]], Any], row: DamagedRow, now: str) -> str:
    """Clear the invalid columns of a row, or delete it; returns what is lost. Derived tables are rebuilt next."""
    if row.table == "threads":
        for column in row.columns:
            value = now if column in ("created_at", "updated_at") else _DEFAULTS.get(column, "")
            nullable = any(one.name == column and one.may_be_null for one in _STORED["threads"])
            execute(
                f"UPDATE threads SET {column} = ? WHERE rowid = ?",  # noqa: S608 - a name of our own
                (None if nullable else value, row.number),
            )
        return f"{row} of thread {row.thread_id}: what it held is lost"
    required_times = {"started_at", "at", "queued_at", "updated_at", "since"}
    if row.columns and (_MAY_BE_EMPTIED | required_times).issuperset(row.columns):
        values = [now if column in required_times else None for column in row.columns]
        changed = ", ".join(f"{column} = ?" for column in row.columns)
        execute(f"UPDATE {row.table} SET {changed} WHERE rowid = ?", (*values, row.number))  # noqa: S608 - names of our own
        return f"{row} of thread {row.thread_id}: emptied, or set to the present time"
    execute(f"DELETE FROM {row.table} WHERE rowid = ?", (row.number,))  # noqa: S608 - a name of our own
    return f"{row} of thread {row.thread_id}: removed"


# Other tables show what is missing: transcript rows are numbered, and calls that ran are in the journal.
_MISSING = {
    "messages are missing in the transcript": """
        SELECT coalesce(max(seq), 0) - count(*) FROM transcript WHERE thread_id = ?""",
    "calls that ran are missing in the journal": """
        SELECT count(*) FROM call_log l WHERE thread_id = ? AND status IN ('success', 'error')
        AND json_valid(record) AND json_extract(record, '$.started_at') IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM journal j WHERE j.thread_id = l.thread_id AND j.call_id = l.call_id)""",
    "branches of the transcript are missing": """
        SELECT count(DISTINCT branch) FROM transcript t WHERE thread_id = ? AND branch > 0 AND NOT EXISTS (
            SELECT 1 FROM branches b WHERE b.thread_id = t.thread_id AND b.branch = t.branch)""",
}


def missing_rows(execute: Callable[[str, Sequence[Any]], Any], thread_id: str) -> Iterator[str]:
    """What other rows of a thread show to be missing, a phrase each."""
    for what, statement in _MISSING.items():
        for (number,) in execute(statement, (thread_id,)):
            if number:
                yield f"{number} {what}"
