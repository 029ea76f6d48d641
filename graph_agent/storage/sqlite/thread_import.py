"""Imports an exported thread with its sub-agents: all rows in one transaction, once the blobs they name are stored.

Nothing in the file is trusted, and nothing in it acts. Permissions are not imported: no answer of a file is valid,
no permissive mode, no saved permission. Its checkpoints are noted as imported, so that every open call is evaluated
and asked about again. What it says about folders, files, contents and other threads of its machine is history.
"""

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TextIO

from graph_agent.errors import AgentError, UsageError
from graph_agent.ports import Blobs, Outcome
from graph_agent.ports.storage import moved_sub_agent_id
from graph_agent.ports.stored_text import json_text
from graph_agent.ports.thread_file import (
    FORMAT,
    PLAIN_NAMES_SINCE,
    SUB_AGENT,
    TABLES,
    VERSION,
    ContentDigest,
    InvalidValue,
    decode_value,
)
from graph_agent.storage import Connection
from graph_agent.storage.decoder import Decoder
from graph_agent.storage.legacy_names import CONTENTS, current_outcome, current_row
from graph_agent.storage.sqlite.checkpoint_rows import (
    check_checkpoints,
    read_checkpoint,
    read_write,
    refresh_write_checksums,
)
from graph_agent.storage.sqlite.health import ONE_OF, is_sound
from graph_agent.storage.sqlite.projections import usage
from graph_agent.storage.sqlite.row_values import IMPORTED_OWNER
from graph_agent.storage.sqlite.search_index import update_search_index

__all__ = [
    "Content",
    "Destination",
    "FileHeader",
    "Row",
    "import_rows",
    "invalid_file",
    "named_contents",
    "read_parts",
    "rename_contents",
    "require_free",
]


@dataclass(frozen=True, slots=True)
class FileHeader:
    """The first part."""

    thread_id: str


@dataclass(frozen=True, slots=True)
class Row:
    """A row, its values as they are stored."""

    table: str
    values: dict[str, Any]
    sub_agent: str = ""
    """Thread of the sub-agent that it is about, there; empty for the thread itself."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a file is imported, and what becomes of rows that would act there without being asked."""

    workspace: str
    """The folder that the thread and its sub-agents work in from now on, whichever the file names."""
    at: str
    references: Mapping[str, str]
    """For each content that the file holds the reference under which it is stored here."""

    def adopt(self, row: Row) -> Row:
        """The row as it is imported."""
        values = {name: rename_contents(value, self.references) for name, value in row.values.items()}
        match row.table:
            case "threads":
                values["workspace"] = self.workspace
                if not row.sub_agent:  # A link to a thread that only has the same id here.
                    values |= {"parent_thread": None, "parent_call": None}
            case "journal":
                values["owner"] = IMPORTED_OWNER + values["owner"].removeprefix(IMPORTED_OWNER)
            case "rewinds":
                values["status"] = "imported" if values["status"] == "done" else values["status"]
            case "inbox":
                values["taken_at"] = values["taken_at"] or self.at
        return replace(row, values=values)


_NO_CONTENT = "blob:sha256:" + "0" * 32
"""Beginning of the reference to a content that a file names and does not hold: no digest looks like this."""
_REFERENCE = re.compile(r"blob:sha256:[0-9a-f]{64}")
_REFERENCE_BYTES = re.compile(_REFERENCE.pattern.encode())


def named_contents(data: bytes) -> frozenset[str]:
    """The references in a content."""
    return frozenset(found.decode() for found in _REFERENCE_BYTES.findall(data))


def rename_contents(value: Any, references: Mapping[str, str]) -> Any:
    """A text, or packed bytes, with these references; any other leads to nothing.

    Whoever only knows the digest of something that is stored here must not get it with an imported thread. All
    references have the same length, so that packed values stay whole.
    """

    def rename(reference: str) -> str:
        missing = _NO_CONTENT + reference.removeprefix(_NO_CONTENT).removeprefix("blob:sha256:")[:32]
        return references.get(reference, missing)

    if isinstance(value, str):
        return _REFERENCE.sub(lambda found: rename(found[0]), value)
    if isinstance(value, bytes):
        return _REFERENCE_BYTES.sub(lambda found: rename(found[0].decode()).encode(), value)
    return value


@dataclass(frozen=True, slots=True)
class Content:
    """A content that rows name."""

    reference: str
    data: str | None
    """In Base64; None where it was gone already when the file was written."""


def invalid_file(what: str) -> UsageError:
    """The refusal of a file; nothing of it has been imported."""
    return UsageError(f"This file cannot be imported: {what}. Nothing was changed.")


def read_parts(file: TextIO) -> Iterator[FileHeader | Row | Content]:
    """The parts in order. Only with the last one it is certain that the file is whole: its digest comes at the end.

    Raises:
        UsageError: it is something else, was cut, changed, or written by a newer version.
    """
    digest, counts = ContentDigest(), {"rows": 0, "blobs": 0}
    top: dict[str, Any] = {}
    end: Any = None
    for key, value in _Text(file).members():
        if end is not None:
            raise invalid_file("there is data after its end")
        if key in counts:
            if not counts["rows"] + counts["blobs"]:
                yield _file_header(top)
                digest.add(top)
            counts[key] += 1
            digest.add(value)
            yield _row(value, top["version"]) if key == "rows" else _content(value)
        elif key == "end":
            end = value
        else:
            top[key] = value
    if not counts["rows"]:
        _file_header(top)
    if end != {**counts, "sha256": digest.text()}:
        raise invalid_file("it was cut or changed after it was written")


def _file_header(value: dict[str, Any]) -> FileHeader:
    if value.get("format") != FORMAT:
        raise invalid_file(f"its format is {value.get('format')!r}, not {FORMAT!r}")
    version = value.get("version")
    if type(version) is int and version > VERSION:
        raise invalid_file(f"it has version {version}, but this program reads up to {VERSION}; update graph-agent")
    thread_id = value.get("thread_id")
    if type(version) is not int or version < 1 or not isinstance(thread_id, str) or not thread_id.strip():
        raise invalid_file("its version or its thread's id is missing")
    return FileHeader(thread_id)


def _row(value: Any, version: int) -> Row:
    table = value.get("table") if isinstance(value, dict) else None
    is_legacy = version < PLAIN_NAMES_SINCE
    if is_legacy and isinstance(table, str):
        table, value = current_row(table, value)
        value["table"] = table
    columns = TABLES.get(table) if isinstance(table, str) else None
    if table is None or columns is None:
        raise invalid_file(f"there is no table {table!r}")
    sub_agent = value.get(SUB_AGENT, "")
    names = value.keys() - {SUB_AGENT}
    if names != {"table", *(column.name for column in columns)} or not isinstance(sub_agent, str):
        raise invalid_file(f"a row of {table} does not have the expected columns")
    try:
        values = {column.name: decode_value(column, value[column.name]) for column in columns}
    except (InvalidValue, RecursionError) as error:
        raise invalid_file(f"in a row of {table}, {error}") from error
    if is_legacy:
        for name, stored in values.items():
            if rename := CONTENTS.get((table, name)):
                values[name] = rename(stored)
    return Row(table, values, sub_agent)


def _content(value: Any) -> Content:
    if not isinstance(value, dict) or value.keys() != {"blob", "data"}:
        raise invalid_file("a content has other fields than its name and its data")
    reference, data = value["blob"], value["data"]
    if not isinstance(reference, str) or not isinstance(data, str | None):
        raise invalid_file("a content is not text")
    return Content(reference, data)


class _Text:
    """The JSON text of a file, of which no more is held than one value."""

    _PIECE = 1 << 16
    _LONGEST = 1 << 30
    """Characters of one part; more is nothing that this program wrote."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._held = ""
        self._at = 0
        self._is_all = False
        self._decoder = json.JSONDecoder(parse_constant=_refuse_constant)

    def members(self) -> Iterator[tuple[str, Any]]:
        """Name and value of each member of the one object; of a list each element with the name of the list."""
        self._take("{")
        while True:
            name = self._value()
            if not isinstance(name, str):
                raise invalid_file(f"{name!r} is not the name of a part")
            self._take(":")
            if self._next_sign() != "[":
                yield name, self._value()
            else:
                self._take("[")
                is_more = self._next_sign() != "]" or self._take("]") != "]"
                while is_more:
                    yield name, self._value()
                    is_more = self._take(",]") == ","
            if self._take(",}") == "}":
                break
        if self._next_sign():
            raise invalid_file("there is data after its end")

    def _next_sign(self) -> str:
        """The next character that is no blank, without taking it; empty at the end."""
        while True:
            while self._at < len(self._held):
                if self._held[self._at] not in " \t\r\n":
                    return self._held[self._at]
                self._at += 1
            if not self._read_more():
                return ""

    def _take(self, signs: str) -> str:
        """Take the next character, which must be one of these."""
        sign = self._next_sign()
        if not sign or sign not in signs:
            where = f"it has {sign!r} where" if sign else "it ends where"
            raise invalid_file(f"it is not the expected JSON: {where} one of {signs!r} was expected")
        self._at += 1
        return sign

    def _value(self) -> Any:
        """The next value, whole."""
        self._next_sign()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._held, self._at)
            except (ValueError, RecursionError) as error:
                if not self._read_more():
                    raise invalid_file(f"it is not JSON, or was cut ({error})") from error
                continue
            # A number may continue in what is not read yet.
            if end < len(self._held) or not self._read_more():
                self._at = end
                return value

    def _read_more(self) -> bool:
        """Read as much again as is held, so that a long value is not tried over and over."""
        if self._is_all:
            return False
        kept = self._held[self._at :]
        if len(kept) > self._LONGEST:
            raise invalid_file(f"one value in it has more than {self._LONGEST} characters")
        try:
            piece = self._file.read(max(self._PIECE, len(kept)))
        except ValueError as error:
            raise invalid_file(f"it is not text ({error})") from error
        self._held, self._at, self._is_all = kept + piece, 0, not piece
        return bool(piece)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


_NUMBER_BELOW = 10**12
"""Numbers beyond it are not kept: they would leave none for what comes after."""
_FREE_NUMBER = {
    table: f"""
SELECT CASE WHEN :id BETWEEN 1 AND {_NUMBER_BELOW} AND NOT EXISTS (SELECT 1 FROM {table} WHERE id = :id)
    THEN :id ELSE (SELECT coalesce(max(id), 0) + 1 FROM {table}) END
"""  # noqa: S608 - names from here
    for table in ("inbox", "rewinds")
}
_NOTE = """
INSERT OR IGNORE INTO imported_checkpoints (thread_id, checkpoint_id)
SELECT thread_id, checkpoint_id FROM checkpoints
WHERE thread_id = ? AND checkpoint_ns = ''
"""
_HEAD = """
SELECT (SELECT count(*) FROM threads WHERE thread_id = :id),
    (SELECT count(*) FROM checkpoints WHERE thread_id = :id AND checkpoint_ns = ''),
    EXISTS (SELECT 1 FROM checkpoints c JOIN threads t USING (thread_id, checkpoint_id)
        WHERE t.thread_id = :id AND c.checkpoint_ns = '')
"""
_HEAD_STATE = """
SELECT c.type, c.checkpoint FROM checkpoints c JOIN threads t USING (thread_id, checkpoint_id)
WHERE t.thread_id = ? AND c.checkpoint_ns = ''
"""
_ATTEMPTS = "SELECT coalesce(max(attempt), 0) FROM journal WHERE thread_id = ? AND call_id = ?"
_CLOCK_DIFFERENCE = timedelta(days=1)
_MOST_ATTEMPTS = 10_000
"""Attempts at a call for a sub-agent that are looked through; no person has said retry more often."""


def require_free(connection: Connection, thread_id: str) -> None:
    """Refuse an id that anything in the database is stored under.

    Raises:
        UsageError: it is taken.
    """
    for table in TABLES:
        if connection.execute(f"SELECT 1 FROM {table} WHERE thread_id = ? LIMIT 1", (thread_id,)).fetchone():  # noqa: S608 - names from here
            raise UsageError(f"Thread {thread_id!r} already exists. Choose another id with --as.")


def import_rows(
    connection: Connection, ids: tuple[str, str], rows: Iterable[Row], blobs: Blobs, decoder: Decoder
) -> None:
    """Store the rows, within the transaction of the caller, who rolls it back when this raises.

    Args:
        ids: of the thread where the file comes from, and here; those of sub-agents follow from it.

    Raises:
        UsageError: an id is taken, or a row is not one that this program writes.
    """
    exported_as, thread_id = ids
    require_free(connection, thread_id)
    new_ids = {exported_as: thread_id}
    """The ids of the file's threads here, by those there."""
    rewinds: dict[int, int] = {}
    for row in rows:
        _require_sound(row, blobs, decoder)
        if row.sub_agent:
            row = _sub_agent_row(connection, row, new_ids)  # noqa: PLW2901 - the same row, as it belongs here
        try:
            _insert(connection, new_ids[row.sub_agent or exported_as], row, rewinds)
        except sqlite3.IntegrityError as error:
            raise invalid_file(f"two rows of {row.table} exclude each other ({error})") from error
    for member_id in new_ids.values():
        _complete(connection, member_id, decoder)
    # Rewinds of the thread name these sub-agents by their ids here, and no other threads.
    planned = connection.execute("SELECT id, plan FROM rewinds WHERE thread_id = ?", (thread_id,)).fetchall()
    for number, text in planned:
        plan = json.loads(text)
        along = plan.get("sub_agents", [])
        if any(child not in new_ids for child, *_ in along):
            raise invalid_file("a rewind in it is about a thread that is not in it")
        if along:
            plan["sub_agents"] = [[new_ids[child], *rest] for child, *rest in along]
            connection.execute("UPDATE rewinds SET plan = ? WHERE id = ?", (json_text(plan), number))


def _sub_agent_row(connection: Connection, row: Row, new_ids: dict[str, str]) -> Row:
    """The row of a sub-agent as it belongs here; the one that names its thread comes first, and adds its id.

    Raises:
        UsageError: it is not below the thread, or not the sub-agent of its call, or its id is taken.
    """
    if row.sub_agent in new_ids and row.table != "threads":
        return row
    there, call_id = row.values.get("parent_thread"), row.values.get("parent_call")
    if row.sub_agent in new_ids or there not in new_ids or not isinstance(call_id, str):
        raise invalid_file("a row belongs to a sub-agent of another thread")
    parent = new_ids[there]
    attempts = min(connection.execute(_ATTEMPTS, (parent, call_id)).fetchone()[0], _MOST_ATTEMPTS)
    moved = moved_sub_agent_id(row.sub_agent, call_id, attempts, (there, parent))
    if moved is None:
        raise invalid_file(f"one of its sub-agents does not belong to call {call_id!r}")
    require_free(connection, moved)
    new_ids[row.sub_agent] = moved
    return replace(row, values={**row.values, "parent_thread": parent})


def _insert(connection: Connection, thread_id: str, row: Row, rewinds: dict[int, int]) -> None:
    """Insert a row; `rewinds` has the numbers of rewinds here, by those there."""
    values = row.values
    if row.table in _FREE_NUMBER:
        number = connection.execute(_FREE_NUMBER[row.table], {"id": values["id"]}).fetchone()[0]
        if row.table == "rewinds":
            rewinds[values["id"]] = number
            plan = json.loads(values["plan"])
            values = {**values, "plan": json_text({**plan, "reverts": rewinds.get(plan["reverts"])})}
        values = {**values, "id": number}
    names, places = ", ".join(("thread_id", *values)), ", ".join("?" * (len(values) + 1))
    connection.execute(
        f"INSERT INTO {row.table} ({names}) VALUES ({places})",  # noqa: S608 - names of our own columns
        (thread_id, *values.values()),
    )


def _complete(connection: Connection, thread_id: str, decoder: Decoder) -> None:
    """Check and derive what depends on all rows of a thread."""
    threads, checkpoints, has_head = connection.execute(_HEAD, {"id": thread_id}).fetchone()
    if threads != 1 or bool(checkpoints) != bool(has_head):
        raise invalid_file("its newest checkpoint is not in it")
    connection.execute(_NOTE, (thread_id,))
    # Secrets were taken out of the file, and contents have other names here.
    refresh_write_checksums(connection, thread_id)
    for found in check_checkpoints(connection.execute, decoder, thread_id):
        if found.problem:
            raise invalid_file(f"its checkpoint {found.id} is not whole: {found.problem}")
    for kind, content in connection.execute(_HEAD_STATE, (thread_id,)).fetchall():
        used = usage(decoder.checkpoint(kind, content))
        connection.execute("UPDATE threads SET usage = ? WHERE thread_id = ?", (used, thread_id))
    # Left over from a thread that once had this id: they were not given to this one.
    connection.execute("DELETE FROM grants WHERE scope = 'thread' AND thread_id = ?", (thread_id,))
    update_search_index(connection, thread_id)


def _require_sound(row: Row, blobs: Blobs, decoder: Decoder) -> None:
    for name, value in row.values.items():
        allowed = _ONE_OF.get((row.table, name))
        if allowed is not None and value not in allowed:
            raise invalid_file(f"a row of {row.table} has the {name} {value!r}, which cannot be imported")
    _require_plausible(row)
    check = _CHECKS.get(row.table)
    try:
        is_fit = is_sound(row.table, row.values) and (check is None or check(row.values, blobs, decoder))
    except (AgentError, LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise invalid_file(f"a row of {row.table} cannot be read: {error}") from error
    if not is_fit:
        raise invalid_file(f"a row of {row.table} is not one that this program writes")


def _require_plausible(row: Row) -> None:
    """Refuse times and numbers that would decide about other threads, or leave no room for what comes after."""
    for column in TABLES[row.table]:
        value = row.values[column.name]
        if column.kind == "number" and column.name != "id" and not -_NUMBER_BELOW < value < _NUMBER_BELOW:
            raise invalid_file(f"a row of {row.table} has the {column.name} {value}, which is out of range")
    if row.table != "threads":
        return
    for name in ("created_at", "updated_at"):
        try:
            at = datetime.fromisoformat(row.values[name])
            is_future = at > datetime.now(UTC) + _CLOCK_DIFFERENCE
        except (TypeError, ValueError) as error:
            raise invalid_file(f"a row of threads has the {name} {row.values[name]!r}, which is no time") from error
        if is_future:
            raise invalid_file(f"a row of threads has the {name} {row.values[name]!r}, which is in the future")


_Values = Mapping[str, Any]


def _is_checkpoint(values: _Values, _: Blobs, decoder: Decoder) -> bool:
    row = [values[name] for name in ("checkpoint_id", "parent_checkpoint_id", "type", "checkpoint", "metadata")]
    read_checkpoint(decoder, "", row)
    return True


def _is_write(values: _Values, _: Blobs, decoder: Decoder) -> bool:
    read_write(decoder, ("", "", values["checkpoint_id"]), [values[name] for name in ("channel", "type", "value")])
    return True


def _is_call(values: _Values, _blobs: Blobs, _decoder: Decoder) -> bool:
    return bool(json.loads(values["record"])["status"] == values["status"])


def _is_attempt(values: _Values, blobs: Blobs, _: Decoder) -> bool:
    outcome = json.loads(values["outcome"] or "null")
    if outcome is None:
        return True
    recorded = Outcome(
        **(current_outcome(json.loads(blobs.get(outcome["blob"]))) if "blob" in outcome else outcome)
    )
    return recorded.status in ("success", "error") and isinstance(recorded.output, str)


_CHECKS: Mapping[str, Callable[[_Values, Blobs, Decoder], bool]] = {
    "checkpoints": _is_checkpoint,
    "writes": _is_write,
    "call_log": _is_call,
    "journal": _is_attempt,
}
"""What is checked of a row that comes from a file beside what is checked of stored ones."""
_ONE_OF: Mapping[tuple[str, str], tuple[str, ...]] = {
    **ONE_OF,
    ("threads", "mode"): ("default", "plan", "dontAsk"),
    ("rewinds", "status"): ("done", "reverted", "imported"),
}
"""The values that a column may have."""
