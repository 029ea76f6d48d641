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
        redaction, digest = _Redaction(secrets, blob), ContentDigest()
        header = {"format": FORMAT, "version": VERSION, "thread_id": thread_id}
        digest.add(header)
        yield f'{_json(header)[:-1]},"rows":['
        rows = 0
        for member, table, values in _rows(store, thread_id, redaction):
            part = {"table": table, **({SUB_AGENT: member} if member else {}), **values}
            digest.add(part)
            yield f"{',' if rows else ''}{_json(part)}"
            rows += 1
        yield '],"blobs":['
        # A blob may name others, which are appended meanwhile.
        for number, reference in enumerate(redaction.references):
            data = redaction.content(reference)
            shown = None if data is None else base64.b64encode(data).decode()
            part = {"blob": redaction.name(reference), "data": shown}
            digest.add(part)
            yield f"{',' if number else ''}{_json(part)}"
        end = {"rows": rows, "blobs": len(redaction.references), "sha256": digest.text()}
        yield f'],"end":{_json(end)}}}'


def _rows(store: ReadStore, thread_id: str, redaction: "_Redaction") -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Sub-agent ("" for the thread itself), table and redacted values of every row."""
    for member in ("", *store.sub_agents(thread_id)):
        for table, columns in TABLES.items():
            names = [column.name for column in columns]
            with closing(store.export_rows(table, names, member or thread_id)) as rows:
                for row in rows:
                    try:
                        values = {
                            column.name: encode_value(column, redaction.value(stored))
                            for column, stored in zip(columns, row, strict=True)
                        }
                    except InvalidValue as error:
                        whose = f"thread {member or thread_id} in {store.path}"
                        raise DamagedDatabase(
                            f"A row of {table} of {whose} is damaged: {error}. "
                            "`graph-agent doctor --repair` keeps a copy and recovers what it can."
                        ) from error
                    yield member, table, values


class _Redaction:
    """Redacts secrets, renames the blobs that hold some, and collects which blobs were named."""

    def __init__(self, secrets: Sequence[str], blob: Callable[[str], bytes]) -> None:
        # The longest first: one may be the beginning of another.
        longest_first = sorted({secret.encode() for secret in secrets}, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, longest_first))) if longest_first else None
        self._blob = blob
        self._names: dict[str, str] = {}
        self.references: list[str] = []
        """The blobs that were named, each once, in the order of their first mention."""
        self._known: set[str] = set()

    def value(self, stored: Any) -> Any:
        """A stored value without secrets."""
        if isinstance(stored, bytes):
            return self._without_secrets(stored)
        if isinstance(stored, str):
            return self._without_secrets(stored.encode("utf-8", "replace")).decode("utf-8", "replace")
        return stored

    def content(self, reference: str) -> bytes | None:
        """The content of a blob as it is exported; None where it is gone."""
        try:
            return self._without_secrets(self._blob(reference))
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

    def _without_secrets(self, data: bytes) -> bytes:
        for found in set(_REFERENCE.findall(data)):
            reference = found.decode()
            if reference not in self._known:
                self._known.add(reference)
                self.references.append(reference)
            data = data.replace(found, self.name(reference).encode())
        return data if self._pattern is None else self._pattern.sub(lambda match: b"*" * len(match[0]), data)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))
