"""Exports a thread as JSON with its sub-agents: every row, and every blob that a row names, of one moment.

Secrets are redacted: each is replaced by stars of its length, so that nothing around it moves. A blob that held one
gets another name, and the rows name it so.
"""

import base64
import hashlib
import json
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import Any

from graph_agent.errors import DamagedDatabase, StorageError, UsageError
from graph_agent.ports.read_store import ReadStore
from graph_agent.ports.thread_file import (
    FORMAT,
    SUB_AGENT,
    TABLES,
    VERSION,
    Column,
    ContentDigest,
    InvalidValue,
    encode_value,
)

__all__ = ["export_thread"]

_REFERENCE = re.compile(rb"blob:sha256:[0-9a-f]{64}")


def export_thread(
    store: ReadStore, thread_id: str, blob: Callable[[str], bytes], secrets: Sequence[str] = ()
) -> Generator[str, None, None]:
    """The lines of the file, made as they are taken; all rows are as they were when the first was read.

    Args:
        blob: gives the content of a reference, or raises StorageError.
        secrets: texts that must not be exported.

    Raises:
        UsageError: a rewind of the thread was interrupted, so that files and conversation do not fit together.
        DamagedDatabase: what is stored cannot be read.
    """
    if store.is_foreign:
        raise UsageError(
            f"Another program wrote {store.path}: its threads can be exported as text (--format md or html) only."
        )
    with store.snapshot():
        if store.has_unfinished_rewind(thread_id):
            raise UsageError(
                f"A rewind of thread {thread_id!r} was interrupted. `graph-agent resume {thread_id}` finishes it; "
                "then the thread can be exported."
            )
        page = _Page(thread_id, _Redaction(secrets, blob))
        yield from page.begin()
        for member in ("", *store.sub_agents(thread_id)):
            for table, columns in TABLES.items():
                names = [column.name for column in columns]
                with closing(store.export_rows(table, names, member or thread_id)) as rows:
                    for row in rows:
                        yield page.row(table, member, row)
        yield from page.end()


class _Page:
    """The file while it is written: one line per row and blob, each with the comma that ends the line before it."""

    def __init__(self, thread_id: str, redaction: "_Redaction") -> None:
        self._header = {"format": FORMAT, "version": VERSION, "thread_id": thread_id}
        self._redaction = redaction
        self._seal = ContentDigest()
        self._named: dict[str, None] = {}
        self._rows = 0

    def begin(self) -> Iterator[str]:
        self._seal.add(self._header)
        yield f'{_json(self._header)[:-1]},"rows":['

    def row(self, table: str, sub_agent: str, row: Sequence[Any]) -> str:
        columns: Sequence[Column] = TABLES[table]
        try:
            values = {
                column.name: encode_value(column, self._redaction.value(stored))
                for column, stored in zip(columns, row, strict=True)
            }
        except InvalidValue as error:
            raise DamagedDatabase(
                f"a row of {table} of thread {self._header['thread_id']!r} cannot be read: {error}"
            ) from error
        self._named |= self._redaction.take_named()
        comma = "," if self._rows else ""
        self._rows += 1
        of = {SUB_AGENT: sub_agent} if sub_agent else {}
        return comma + self._part({"table": table, **of, **values})

    def end(self) -> Iterator[str]:
        yield '],"blobs":['
        contents = 0
        todo = list(self._named)
        for reference in todo:
            data = self._redaction.content(reference)
            todo += [name for name in self._redaction.take_named() if name not in todo]
            shown = None if data is None else base64.b64encode(data).decode()
            comma = "," if contents else ""
            contents += 1
            yield comma + self._part({"blob": self._redaction.name(reference), "data": shown})
        end = {"rows": self._rows, "blobs": contents, "sha256": self._seal.text()}
        yield f'],"end":{_json(end)}}}'

    def _part(self, value: dict[str, Any]) -> str:
        self._seal.add(value)
        return _json(value)


class _Redaction:
    """Redacts secrets, renames the blobs that hold some, and collects which blobs were named."""

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
        """The blobs that were named since the last time."""
        named, self._named = self._named, {}
        return named

    def content(self, reference: str) -> bytes | None:
        """The content of a blob as it is exported; None where it is gone."""
        try:
            return self._without(self._blob(reference))
        except StorageError:
            return None

    def name(self, reference: str) -> str:
        """The name of a blob as it is exported."""
        if self._pattern is None:
            return reference
        if reference not in self._names:
            self._names[reference] = reference  # A blob that named itself would recur for ever.
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
