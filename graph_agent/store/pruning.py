"""Copying and deleting checkpoints without cutting what a delta channel rests on."""

import json
import sqlite3
from collections.abc import Iterable, Sequence

from graph_agent.store.deltas import Loads, ancestors

__all__ = ["copy_checkpoints", "delete_runs", "keep_latest"]

_HEADS = "SELECT checkpoint_ns, max(checkpoint_id) FROM checkpoints WHERE thread_id = ? GROUP BY checkpoint_ns"


def copy_checkpoints(connection: sqlite3.Connection, source: str, target: str) -> None:
    """Copy every checkpoint and write of one thread to another, in the order in which they were stored."""
    for table, columns in (
        ("checkpoints", "checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata"),
        ("writes", "checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value"),
    ):
        connection.execute(
            f"INSERT OR REPLACE INTO {table} (thread_id, {columns}) "  # noqa: S608 - names only
            f"SELECT ?, {columns} FROM {table} WHERE thread_id = ? ORDER BY rowid",
            (target, source),
        )


def delete_runs(connection: sqlite3.Connection, run_ids: Iterable[str]) -> set[str]:
    """Delete the checkpoints whose metadata name one of these runs, with their writes; which threads had some."""
    wanted = {str(run_id) for run_id in run_ids}
    rows = connection.execute(
        "SELECT thread_id, checkpoint_ns, checkpoint_id, metadata FROM checkpoints"
    ).fetchall()
    gone = [tuple(row[:3]) for row in rows if json.loads(row[3] or b"{}").get("run_id") in wanted]
    _delete(connection, gone)
    return {key[0] for key in gone}


def keep_latest(connection: sqlite3.Connection, thread_id: str, loads: Loads) -> None:
    """Delete all but each namespace's head and the ancestors back to a snapshot of every delta channel of it."""
    for namespace, head in connection.execute(_HEADS, (thread_id,)).fetchall():
        kept = {head, *_rested_on(connection, (thread_id, namespace, head), loads)}
        rows = connection.execute(
            "SELECT checkpoint_id FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?",
            (thread_id, namespace),
        ).fetchall()
        _delete(connection, [(thread_id, namespace, row[0]) for row in rows if row[0] not in kept])


def _rested_on(connection: sqlite3.Connection, key: tuple[str, str, str], loads: Loads) -> list[str]:
    metadata = connection.execute(
        "SELECT metadata FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?", key
    ).fetchone()[0]
    # The framework counts here, for each delta channel, the steps since its last snapshot; absent means snapshot.
    sought = set(json.loads(metadata or b"{}").get("counters_since_delta_snapshot") or {})
    rested_on: list[str] = []
    for checkpoint_id, values in ancestors(connection, key, loads):
        if not sought:
            break
        rested_on.append(checkpoint_id)
        sought -= values.keys()
    return rested_on


def _delete(connection: sqlite3.Connection, keys: Sequence[tuple[str, ...]]) -> None:
    for table in ("checkpoints", "writes"):
        connection.executemany(
            f"DELETE FROM {table} WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?",  # noqa: S608 - names only
            keys,
        )
