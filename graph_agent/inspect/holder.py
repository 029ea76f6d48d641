"""Whether the process that a lease names still lives. Looks at the process table only and takes no lock."""

import socket
from dataclasses import dataclass

from graph_agent.ports.processes import boot_id, process_started

__all__ = ["Lease", "is_alive"]


@dataclass(frozen=True, slots=True)
class Lease:
    """Who took the thread last."""

    pid: int
    process_started: str
    """Start time as the kernel tells it; with the boot id it makes the pid unique."""
    boot_id: str
    host: str
    since: str
    ended_at: str | None = None
    """None while held, and after a crash."""


def is_alive(lease: Lease) -> bool:
    """Whether the lease is neither ended nor left behind by a process that died or a machine that restarted.

    A process on another host counts as alive: it cannot be looked at.
    """
    if lease.ended_at is not None:
        return False
    if lease.host != socket.gethostname():
        return True
    return lease.boot_id == boot_id() and process_started(lease.pid) == lease.process_started
