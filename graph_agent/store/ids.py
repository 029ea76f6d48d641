"""The ids of checkpoints: they sort by the time that is in them, and what sorts last is where a thread stands."""

import sqlite3
from uuid import UUID

__all__ = ["newest_id", "time_in"]

_NEWEST = "SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?"
_VERSION = 6
_END = 1 << 60
_YEAR = 365 * 86400 * 10**7


def newest_id(connection: sqlite3.Connection, thread_id: str, namespace: str) -> str:
    """The id that sorts last; empty where there is none."""
    return str(connection.execute(_NEWEST, (thread_id, namespace)).fetchone()[0] or "")


def time_in(checkpoint_id: str) -> int:
    """The time in an id, in units of 100 ns; 0 where it has none, or one that leaves no room for later ones."""
    try:
        found = UUID(checkpoint_id)
    except ValueError:
        return 0
    time = (found.int >> 80) << 12 | (found.int >> 64) & 0xFFF
    return time if found.version == _VERSION and time < _END - _YEAR else 0
