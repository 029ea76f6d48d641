"""Who holds which thread, found out before anything is read that depends on it.

The order matters: what a process wrote before it was seen dead is read afterwards. The other way round, a call that
was read as executing would be taken for broken off when its process has merely finished it and gone.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from graph_agent.inspect.database import ReadOnlyDatabase
from graph_agent.inspect.holder import Lease, is_alive

__all__ = ["Lives", "read_lives"]


@dataclass(frozen=True, slots=True)
class Lives:
    """The last lease of each thread, and which of their processes live."""

    leases: Mapping[str, Lease]
    held: frozenset[str]
    """Threads a living process holds."""


def read_lives(database: ReadOnlyDatabase) -> Lives:
    """Look at every lease; must not run inside `ReadOnlyDatabase.one_moment`."""
    rows = database.rows("SELECT thread_id, pid, process_started, boot_id, host, since, ended_at FROM leases")
    leases = {thread_id: Lease(*columns) for thread_id, *columns in rows}
    return Lives(leases, frozenset(thread_id for thread_id, lease in leases.items() if is_alive(lease)))
