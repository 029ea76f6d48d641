"""The lease: who holds a thread, told by a row beside the lock. Information only; the kernel's lock decides."""

import os
import socket
import sqlite3

from graph_agent.ports import Holder
from graph_agent.ports.processes import boot_id, process_started
from graph_agent.store.jsontext import storable

__all__ = ["end_lease", "holder", "write_lease"]

_WRITE = """
INSERT INTO leases (thread_id, life, pid, process_started, boot_id, host, since, ended_at)
VALUES (?, ?, ?, ?, ?, ?, ?, NULL)
ON CONFLICT DO UPDATE SET life = excluded.life, pid = excluded.pid, process_started = excluded.process_started,
    boot_id = excluded.boot_id, host = excluded.host, since = excluded.since, ended_at = NULL
"""


def write_lease(connection: sqlite3.Connection, thread_id: str, life: str, since: str) -> None:
    """Say that this process holds the thread."""
    pid = os.getpid()
    host = storable(socket.gethostname())
    connection.execute(_WRITE, (thread_id, life, pid, process_started(pid) or "", boot_id(), host, since))


def end_lease(connection: sqlite3.Connection, thread_id: str, life: str, at: str) -> None:
    """Say that the life has let go; a later holder's lease is left alone."""
    connection.execute("UPDATE leases SET ended_at = ? WHERE thread_id = ? AND life = ?", (at, thread_id, life))


def holder(connection: sqlite3.Connection, thread_id: str) -> Holder | None:
    """Who holds the thread, or held it when the process died; None when it was never held or was let go.

    Found out without touching the lock. A process on another host counts as alive: it cannot be looked at.
    """
    row = connection.execute(
        "SELECT pid, host, since, life, boot_id, process_started FROM leases "
        "WHERE thread_id = ? AND ended_at IS NULL",
        (thread_id,),
    ).fetchone()
    if row is None:
        return None
    pid, host, since, life, boot, started = row
    is_here = host == storable(socket.gethostname())
    is_alive = not is_here or (boot == boot_id() and process_started(pid) == started)
    return Holder(pid=pid, host=host, since=since, life=life, is_alive=is_alive)
