"""Collecting blobs and spools that nothing names any more; safe beside living writers.

A blob is kept while any row names it, and for an hour after it was last put: a writer stores the blob first and the
row that names it afterwards.
"""

import json
import os
import re
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from graph_agent.errors import StorageError
from graph_agent.store.blobs import FileBlobs

__all__ = ["Collected", "collect", "collectable", "referenced"]

_YOUNG_S = 3600.0
_NAMED = re.compile(rb"blob:sha256:([0-9a-f]{64})")
_COLUMNS = (
    ("journal", "intent"),
    ("journal", "outcome"),
    ("rewinds", "plan"),
    ("ledger", "record"),
    ("transcript", "body"),
    ("decisions", "args"),
    ("checkpoints", "checkpoint"),
    ("writes", "value"),
)
_BESIDE = ".code"
"""Ending of what lies beside the spool of a background shell and goes with it."""
_OUTCOMES = "SELECT outcome FROM journal WHERE outcome LIKE '{\"blob\"%'"
_UNSETTLED = """
SELECT thread_id, call_id, attempt FROM journal WHERE status NOT IN ('success', 'error')
UNION SELECT thread_id, call_id, attempt FROM shells WHERE ended_at IS NULL
"""


@dataclass(frozen=True, slots=True)
class Collected:
    """What went."""

    files: int = 0
    bytes: int = 0


def referenced(connection: sqlite3.Connection, blobs: FileBlobs) -> set[str]:
    """Digests of all blobs that a row names, itself or through an outcome that is a blob."""
    found: set[str] = set()
    for table, column in _COLUMNS:
        # A text of JSON escapes nothing of a reference; a packed value holds it as it is.
        rows = connection.execute(
            f"SELECT CAST({column} AS BLOB) FROM {table} "  # noqa: S608 - names from above
            f"WHERE instr(CAST({column} AS BLOB), CAST('blob:sha256:' AS BLOB))"
        )
        for (value,) in rows:
            found.update(match.decode() for match in _NAMED.findall(value))
    for (outcome,) in connection.execute(_OUTCOMES).fetchall():
        try:
            found.update(match.decode() for match in _NAMED.findall(blobs.get(json.loads(outcome)["blob"])))
        except StorageError:
            # Damaged or gone: it names nothing that anybody could read.
            continue
    return found


def collectable(connection: sqlite3.Connection, blobs: FileBlobs, now: float | None = None) -> list[Path]:
    """What nothing names and nobody has just written."""
    until = _until(now)
    kept = referenced(connection, blobs)
    running = {blobs.spool_name(*row) for row in connection.execute(_UNSETTLED)}
    return [path for path, is_kept in _files(blobs.folder, kept, running) if not is_kept and _is_old(path, until)]


def collect(connection: sqlite3.Connection, blobs: FileBlobs, now: float | None = None) -> Collected:
    """Remove it."""
    removed = [
        size
        for path in collectable(connection, blobs, now)
        if (size := blobs.remove(path, _until(now))) is not None
    ]
    return Collected(len(removed), sum(removed))


def _until(now: float | None) -> float:
    return (time.time() if now is None else now) - _YOUNG_S


def _is_old(path: Path, until: float) -> bool:
    try:
        return path.lstat().st_mtime <= until
    except OSError:
        return False


def _files(folder: Path, kept: set[str], running: set[str]) -> Iterator[tuple[Path, bool]]:
    for path in _below(folder / "objects"):
        yield path, f"{path.parent.name}{path.name}" in kept
    for path in _below(folder / "spool"):
        yield path, f"{path.parent.name}/{path.name.removesuffix(_BESIDE)}" in running


def _below(folder: Path) -> Iterator[Path]:
    for where, _, names in os.walk(folder):
        yield from (Path(where) / name for name in names)
