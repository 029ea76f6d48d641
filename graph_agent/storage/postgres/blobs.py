"""Blobs in a table, so that every host sees them; the output files of running calls stay on their host."""

import hashlib
import threading
import weakref
import zlib
from collections.abc import Callable, Container
from typing import Any

import psycopg

from graph_agent.config.paths import ServerPath, blob_dir
from graph_agent.errors import StorageError
from graph_agent.storage.blobs import FileBlobs, require_digest
from graph_agent.storage.postgres.connection import PostgresConnection, connect
from graph_agent.storage.postgres.errors import translate_error

__all__ = ["PostgresBlobs"]

_PUT = """
INSERT INTO blobs (digest, content) VALUES (%s, %s) ON CONFLICT (digest) DO UPDATE SET stored_at = clock_timestamp()
"""
_OLD = "SELECT digest FROM blobs WHERE stored_at < to_timestamp(%(until)s)"
_DROP = """
DELETE FROM blobs WHERE digest = ANY (%(digests)s) AND stored_at < to_timestamp(%(until)s)
RETURNING octet_length(content)
"""
_GET = "SELECT content FROM blobs WHERE digest = %s"


class PostgresBlobs(FileBlobs):
    """The port `Blobs`, over a session of its own: it is stored whatever becomes of the row that will name it."""

    def __init__(self, path: ServerPath) -> None:
        super().__init__(blob_dir(path))
        self._place = path
        self._lock = threading.Lock()
        self._connection: PostgresConnection | None = None

    def put(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        self._execute(_PUT, (digest, zlib.compress(data)))
        return f"blob:sha256:{digest}"

    def get(self, reference: str) -> bytes:
        digest = require_digest(reference)
        row = self._execute(_GET, (digest,))
        if row is None:
            raise StorageError(f"{reference!r} is missing in the database {self._place}. Restore it from a backup.")
        try:
            data = zlib.decompress(row[0])
        except zlib.error:
            data = b""
        if hashlib.sha256(data).hexdigest() != digest:
            raise StorageError(
                f"{reference!r} is damaged: the database {self._place} no longer holds what was stored. "
                "Restore it from a backup."
            )
        return data

    def drop_unreferenced(self, find_referenced: Callable[[], Container[str]], until: float) -> list[int]:
        with self._lock:
            old = self._all(_OLD, {"until": until})
        referenced = find_referenced() if old else ()
        gone = [digest for (digest,) in old if digest not in referenced]
        with self._lock:
            return [size for (size,) in self._all(_DROP, {"until": until, "digests": gone})] if gone else []

    def _all(self, sql: str, values: dict[str, Any]) -> list[Any]:
        try:
            return self._session().execute(sql.encode(), values, binary=True).fetchall()
        except psycopg.Error as error:
            raise translate_error(self._place, error) from error

    def _execute(self, sql: str, values: tuple[Any, ...]) -> Any:
        """The first row, if there are any. Both statements may be repeated: on a new session where one was lost."""
        with self._lock:
            try:
                try:
                    return self._run(sql, values)
                except (psycopg.OperationalError, psycopg.InterfaceError):
                    if self._connection is None or not self._connection.is_lost:
                        raise
                    self._connection = None
                return self._run(sql, values)
            except psycopg.Error as error:
                raise translate_error(self._place, error) from error

    def _run(self, sql: str, values: tuple[Any, ...]) -> Any:
        cursor = self._session().execute(sql.encode(), values, binary=True)
        return cursor.fetchone() if cursor.description else None

    def _session(self) -> "psycopg.Connection[Any]":
        if self._connection is None:
            self._connection = PostgresConnection(connect(self._place))
            weakref.finalize(self, self._connection.close)
        return self._connection.session
