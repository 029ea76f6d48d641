"""Writes a thread out as JSON, whole, with its sub-agents: every row, and every content that a row names.

Reads only, at one moment.

Secrets do not go out: each is replaced by stars of its length, wherever it stands, so that nothing around it moves.
A content that held one gets another name, and the rows name it so.
"""

import base64
import hashlib
import json
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from graph_agent.errors import DamagedDatabase, StorageError, UsageError
from graph_agent.inspect.connection import ReadOnlyDatabase
from graph_agent.ports.thread_file import (
    FORMAT,
    SUB_AGENT,
    TABLES,
    VERSION,
    VERSION_WITHOUT_SUB_AGENTS,
    Column,
    ContentDigest,
    InvalidValue,
    written,
)

__all__ = ["export_thread"]

_REFERENCE = re.compile(rb"blob:sha256:[0-9a-f]{64}")
_INSTEAD = {
    # An answer travels as history: none of them stands where the thread goes.
    ("decisions", "superseded_at"): "coalesce(superseded_at, applied_at, at)",
    # Whose message is in the conversation counts as taken.
    ("inbox", "taken_at"): "coalesce(taken_at, CASE WHEN EXISTS (SELECT 1 FROM transcript m "
    "WHERE m.thread_id = inbox.thread_id AND m.message_id = 'inbox-' || inbox.id) THEN queued_at END)",
    # A mode that lets more through than is usual was chosen here, by someone who is not there.
    ("threads", "mode"): "CASE WHEN mode IN ('plan', 'dontAsk') THEN mode ELSE 'default' END",
    ("checkpoints", "type"): "coalesce(type, '')",
    ("checkpoints", "checkpoint"): "coalesce(checkpoint, x'')",
    ("checkpoints", "metadata"): "coalesce(metadata, '{}')",
    ("writes", "type"): "coalesce(type, '')",
    ("writes", "value"): "coalesce(value, x'')",
}
"""What is selected in place of some columns."""
_ORDERS = {"transcript": "seq", "ledger": "seq", "branches": "branch", "decisions": "id", "inbox": "id"}
_BY_KEY = {"pruned": "checkpoint_id", "rewinds": "id"}


def export_thread(
    database: ReadOnlyDatabase, thread_id: str, blob: Callable[[str], bytes], secrets: Sequence[str] = ()
) -> Generator[str, None, None]:
    """The lines of the file, made as they are taken; all rows are as they stood when the first was.

    Args:
        blob: gives the content behind a reference, or raises StorageError.
        secrets: texts that must not go out.

    Raises:
        UsageError: a rewind of the thread was broken off, so that it is half here and half there.
        DamagedDatabase: what is stored cannot be read.
    """
    with database.snapshot():
        tables = {name for (name,) in database.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        if "threads" not in tables:
            raise UsageError(
                f"{database.path} was written by another program than graph-agent; its threads can be shown "
                "(--format md or html), but not exported whole"
            )
        if "rewinds" in tables and database.rows(_BROKEN_OFF, (thread_id,)):
            raise UsageError(
                f"a rewind of thread {thread_id!r} was broken off; `graph-agent resume {thread_id}` finishes it, "
                "then it can be exported"
            )
        below = [child for (child,) in database.rows(_BELOW, (thread_id,))]
        page = _Page(thread_id, VERSION if below else VERSION_WITHOUT_SUB_AGENTS, _Hidden(secrets, blob))
        yield from page.begin()
        for member in ("", *below):
            for table in (table for table in TABLES if table in tables):
                with closing(_rows(database, table, member or thread_id)) as rows:
                    yield from map(partial(page.row, table, member), rows)
        yield from page.end()


def _rows(database: ReadOnlyDatabase, table: str, thread_id: str) -> Generator[tuple[Any, ...]]:
    names = ", ".join(_INSTEAD.get((table, column.name), column.name) for column in TABLES[table])
    order = _BY_KEY.get(table) or _ORDERS.get(table, "rowid")
    return database.stream(
        f"SELECT {names} FROM {table} WHERE thread_id = ? ORDER BY {order}",  # noqa: S608 - names of our own
        (thread_id,),
    )


_BELOW = """WITH RECURSIVE family(id, depth) AS (SELECT ?, 0 UNION SELECT c.thread_id, depth + 1 FROM threads c
    JOIN family ON c.parent_thread = family.id WHERE c.parent_call IS NOT NULL AND depth < 100)
    SELECT id FROM family JOIN threads t ON t.thread_id = id WHERE depth > 0 ORDER BY depth, t.rowid"""
_BROKEN_OFF = "SELECT 1 FROM rewinds WHERE thread_id = ? AND status NOT IN ('done', 'undone')"


class _Page:
    """The file while it is written: what stands on a line of its own, and what ends the line before it."""

    def __init__(self, thread_id: str, version: int, hidden: "_Hidden") -> None:
        self._top = {"format": FORMAT, "version": version, "thread_id": thread_id}
        self._hidden = hidden
        self._seal = ContentDigest()
        self._named: dict[str, None] = {}
        self._rows = 0

    def begin(self) -> Iterator[str]:
        self._seal.add(self._top)
        yield f'{_json(self._top)[:-1]},"rows":['

    def row(self, table: str, sub_agent: str, row: Sequence[Any]) -> str:
        columns: Sequence[Column] = TABLES[table]
        try:
            values = {
                column.name: written(column, self._hidden.value(stored))
                for column, stored in zip(columns, row, strict=True)
            }
        except InvalidValue as error:
            raise DamagedDatabase(
                f"a row of {table} of thread {self._top['thread_id']!r} cannot be read: {error}"
            ) from error
        self._named |= self._hidden.take_named()
        comma = "," if self._rows else ""
        self._rows += 1
        of = {SUB_AGENT: sub_agent} if sub_agent else {}
        return comma + self._part({"table": table, **of, **values})

    def end(self) -> Iterator[str]:
        yield '],"blobs":['
        contents = 0
        todo = list(self._named)
        for reference in todo:
            data = self._hidden.content(reference)
            todo += [name for name in self._hidden.take_named() if name not in todo]
            shown = None if data is None else base64.b64encode(data).decode()
            comma = "," if contents else ""
            contents += 1
            yield comma + self._part({"blob": self._hidden.name(reference), "data": shown})
        end = {"rows": self._rows, "blobs": contents, "sha256": self._seal.text()}
        yield f'],"end":{_json(end)}}}'

    def _part(self, value: dict[str, Any]) -> str:
        self._seal.add(value)
        return _json(value)


class _Hidden:
    """Replaces secrets, and the names of contents that hold some; knows which contents were named."""

    def __init__(self, secrets: Sequence[str], blob: Callable[[str], bytes]) -> None:
        # The longest first: one may be the beginning of another.
        longest_first = sorted({secret.encode() for secret in secrets}, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, longest_first))) if longest_first else None
        self._blob = blob
        self._named: dict[str, None] = {}
        self._names: dict[str, str] = {}

    def value(self, stored: Any) -> Any:
        """A stored value without secrets."""
        if isinstance(stored, bytes):
            return self._without(stored)
        if isinstance(stored, str):
            return self._without(stored.encode("utf-8", "replace")).decode("utf-8", "replace")
        return stored

    def take_named(self) -> dict[str, None]:
        """The contents that were named since the last time."""
        named, self._named = self._named, {}
        return named

    def content(self, reference: str) -> bytes | None:
        """What the contents are to be; None where they are gone."""
        try:
            return self._without(self._blob(reference))
        except StorageError:
            return None

    def name(self, reference: str) -> str:
        """The name of a content as it goes out."""
        if self._pattern is None:
            return reference
        if reference not in self._names:
            self._names[reference] = reference  # One that named itself would never be done with.
            data = self.content(reference)
            digest = None if data is None else hashlib.sha256(data).hexdigest()
            self._names[reference] = f"blob:sha256:{digest}" if digest else reference
        return self._names[reference]

    def _without(self, data: bytes) -> bytes:
        for found in set(_REFERENCE.findall(data)):
            reference = found.decode()
            self._named[reference] = None
            data = data.replace(found, self.name(reference).encode())
        return data if self._pattern is None else self._pattern.sub(lambda match: b"*" * len(match[0]), data)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))
