"""The lease of a thread on a server: the right to run it, for processes on any host.

A lease is a row with the token of its holder and the time at which it ends, by the clock of the server. A session
of its own renews it. Every transaction of a process that holds leases begins with a look at the row and keeps it
from changing until the end: nothing is written after another process took the thread, however late it was sent.

The holder counts by its own clock, from before each renewal was sent: it stops work some seconds before another
process can begin. That clock also runs while the machine sleeps or the process stands still.
"""

import asyncio
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import psycopg

from graph_agent.config.paths import ServerPath
from graph_agent.errors import InternalError, LeaseLost, StorageError, ThreadHeld
from graph_agent.ports import Clock
from graph_agent.ports.background import boot_id, process_started
from graph_agent.ports.stored_text import storable
from graph_agent.storage import Connection
from graph_agent.storage.postgres.connection import PostgresConnection, connect

__all__ = ["LENGTH_S", "Leases", "PostgresThreadLock"]

LENGTH_S = 12.0
"""How long a lease lasts from its last renewal: so long a thread stays held after its host has failed."""
_RENEWALS = 4
"""How many times a lease is renewed in that time."""
_MARGIN_S = 2.5
"""How long before its end the holder stops: a command gets two seconds to end on its own."""
_RETRY_S = 0.5
_LOOK_S = 1.0
"""A process that was paused notices within this time that its lease is over, or at once when it writes."""

_TAKE = """
INSERT INTO leases
    (thread_id, owner_token, pid, process_started, boot_id, host, since, pid_namespace, expires_at)
VALUES (%(thread)s, %(token)s, %(pid)s, %(started)s, %(boot)s, %(host)s, %(since)s, %(namespace)s,
    clock_timestamp() + make_interval(secs => %(length)s::float8))
ON CONFLICT (thread_id) DO UPDATE SET owner_token = excluded.owner_token, pid = excluded.pid,
    process_started = excluded.process_started, boot_id = excluded.boot_id, host = excluded.host,
    since = excluded.since, pid_namespace = excluded.pid_namespace, expires_at = excluded.expires_at,
    ended_at = NULL
WHERE leases.ended_at IS NOT NULL OR leases.expires_at < clock_timestamp()
    OR leases.owner_token IN (%(token)s, %(replaced)s)
"""
_HOLDER = "SELECT owner_token, pid, process_started, boot_id, host, pid_namespace FROM leases WHERE thread_id = %s"
_RENEW = """
UPDATE leases SET expires_at = clock_timestamp() + make_interval(secs => %s::float8)
WHERE thread_id = %s AND owner_token = %s AND ended_at IS NULL
"""
_RELEASE = """
UPDATE leases SET ended_at = %s, expires_at = '-infinity' WHERE thread_id = %s AND owner_token = %s
"""


def _now() -> float:
    """Seconds, also of sleep, where the system counts them."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@dataclass(slots=True, eq=False)
class _Lease:
    """A lease that this process holds, or has lost and not released yet."""

    thread_id: str
    token: str
    ends_at: float
    """By the clock of this process; a part of a lease's length before its end on the server."""
    on_lost: Callable[[], None]
    is_lost: bool = False
    is_deleted: bool = False
    """Whether the thread is being deleted, with this row."""


class Leases:
    """The leases of one process in one database: renews them, and keeps it from writing without them."""

    def __init__(self, path: ServerPath, length_s: float = LENGTH_S) -> None:
        self.length_s = length_s
        self._path = path
        self._held: dict[str, _Lease] = {}
        self._changes = threading.Lock()
        self._wake = threading.Event()
        self._threads: list[threading.Thread] = []
        self._session: psycopg.Connection[Any]
        """For renewals alone."""

    @property
    def margin_s(self) -> float:
        """How long before the end on the server the holder stops."""
        return min(_MARGIN_S, self.length_s / _RENEWALS)

    def prepare(self) -> None:
        """Connect for renewals: a lease that cannot be renewed must not be taken.

        Raises:
            StorageError: the server cannot be reached, or has no connection left.
        """
        if self._threads:
            return
        self._session = self._connect()
        for work in (self._renew_all, self._watch):
            self._threads.append(threading.Thread(target=work, name="leases", daemon=True))
            self._threads[-1].start()

    def add(self, lease: _Lease) -> None:
        """Renew this one from now on, in place of an earlier one of its thread."""
        with self._changes:
            self._held[lease.thread_id] = lease

    def remove(self, thread_id: str) -> None:
        """Renew it no longer; transactions no longer depend on it."""
        with self._changes:
            self._held.pop(thread_id, None)

    def close(self) -> None:
        """End the renewals."""
        self._wake.set()
        for thread in self._threads:
            thread.join()

    def fencing(self, thread_id: str) -> list[_Lease]:
        """The leases that a transaction depends on.

        That is the one of its thread; without one, as where a thread is a sub-agent's, all that are held.

        Raises:
            LeaseLost: one of them is over.
        """
        with self._changes:
            own = self._held.get(thread_id)
            leases = [own] if own is not None else list(self._held.values())
        for lease in leases:
            if lease.is_lost or _now() >= lease.ends_at:
                raise self._lost(lease)
        return leases

    def require(self, leases: Iterable[_Lease], tokens: Mapping[str, str]) -> None:
        """Compare leases with what the rows of their threads say, which nobody can change for now.

        Raises:
            LeaseLost: another process has one of them.
        """
        for lease in leases:
            token = tokens.get(lease.thread_id)
            if token != lease.token and not (token is None and lease.is_deleted):
                raise self._lost(lease)

    def _lost(self, lease: _Lease) -> LeaseLost:
        if not lease.is_lost:
            lease.is_lost = True
            lease.on_lost()
        return LeaseLost(
            f"This process lost its lease on thread {lease.thread_id!r}: it was paused, or could not reach the "
            f"server, for too long. Nothing more is recorded; continue with `graph-agent run --resume "
            f"{lease.thread_id}`."
        )

    def _watch(self) -> None:
        """Stop work on a lease at its end, also while the server is waited for."""
        while not self._wake.is_set():
            with self._changes:
                leases = [lease for lease in self._held.values() if not lease.is_lost]
            left = [lease.ends_at - _now() for lease in leases]
            for lease, seconds in zip(leases, left, strict=True):
                if seconds <= 0:
                    self._lost(lease)
            self._wake.wait(min([_LOOK_S, *(seconds for seconds in left if seconds > 0)]))

    def _renew_all(self) -> None:
        pause = self.length_s / _RENEWALS
        while not self._wake.wait(pause):
            with self._changes:
                leases = [lease for lease in self._held.values() if not lease.is_lost]
            try:
                self._renew(leases)
                pause = self.length_s / _RENEWALS
            except (psycopg.Error, StorageError):
                self._session.close()
                pause = _RETRY_S
        self._session.close()

    def _renew(self, leases: Iterable[_Lease]) -> None:
        if self._session.closed:
            self._session = self._connect()
        for lease in leases:
            sent = _now()
            if self._session.execute(_RENEW, (self.length_s, lease.thread_id, lease.token)).rowcount:
                lease.ends_at = sent + self.length_s - self.margin_s
            elif not lease.is_deleted:
                self._lost(lease)

    def _connect(self) -> psycopg.Connection[Any]:
        session = connect(self._path)
        session.execute("SET statement_timeout = '2s'; SET lock_timeout = '2s'")
        return session


_T = TypeVar("_T")


class _Database(Protocol):
    leases: Leases

    async def run(self, work: Callable[[Connection], _T]) -> _T: ...


class PostgresThreadLock:
    """The port `ThreadLock`. One object holds one thread; acquiring it again renews the lease."""

    def __init__(self, database: _Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._lease: _Lease | None = None

    async def acquire(self, thread_id: str, owner_token: str, on_lost: Callable[[], None] | None = None) -> None:
        held = self._lease
        if held is not None and held.thread_id != thread_id:
            raise InternalError(f"this lock holds thread {held.thread_id!r} and cannot take {thread_id!r} as well")
        leases, loop = self._database.leases, asyncio.get_running_loop()
        since, replaced = self._clock.now(), "" if held is None else held.token
        lease = _Lease(thread_id, owner_token, 0, lambda: _call_soon(loop, on_lost))

        def take(connection: Connection) -> str:
            session = _session_of(connection)
            leases.prepare()
            owner = {**_this_process(), "thread": thread_id, "token": owner_token, "since": since}
            sent = _now()
            given = {**owner, "length": leases.length_s, "replaced": replaced}
            refusal = ""
            if not session.execute(_TAKE, given).rowcount:
                gone, refusal = _examine_holder(session, thread_id)
                # The lease of a process that is certainly dead is not waited for.
                sent = _now()
                if gone and session.execute(_TAKE, {**given, "replaced": gone}).rowcount:
                    refusal = ""
            lease.ends_at = sent + leases.length_s - leases.margin_s
            return refusal

        if refusal := await self._database.run(take):
            raise ThreadHeld(refusal)
        self._lease = lease
        leases.add(lease)

    async def release(self) -> None:
        """See `ThreadLock.release`."""
        lease, self._lease = self._lease, None
        if lease is None:
            return
        values = (self._clock.now(), lease.thread_id, lease.token)
        self._database.leases.remove(lease.thread_id)
        # Where the server cannot be reached, the lease ends by itself.
        with suppress(StorageError):
            await self._database.run(lambda connection: _session_of(connection).execute(_RELEASE, values).rowcount)

    def mark_ending(self) -> None:
        """Nothing: on a server a thread is not waited for."""

    def mark_deleted(self) -> None:
        """Note that the thread is being deleted, with its lease."""
        if self._lease is not None:
            self._lease.is_deleted = True


def _session_of(connection: Connection) -> psycopg.Connection[Any]:
    if not isinstance(connection, PostgresConnection):
        raise InternalError("this connection is another database's")
    return connection.session


def _call_soon(loop: asyncio.AbstractEventLoop, on_lost: Callable[[], None] | None) -> None:
    if on_lost is not None:
        with suppress(RuntimeError):  # A closed loop runs nothing that could be stopped.
            loop.call_soon_threadsafe(on_lost)


def _this_process() -> dict[str, Any]:
    pid = os.getpid()
    host = storable(socket.gethostname())
    started = process_started(pid) or ""
    return {"pid": pid, "started": started, "boot": boot_id(), "host": host, "namespace": _pid_namespace()}


def _pid_namespace() -> str:
    """Distinguishes the containers of a machine, each of which numbers its processes itself."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _examine_holder(session: psycopg.Connection[Any], thread_id: str) -> tuple[str, str]:
    """The token of a holder that is known to be dead, or an empty text; and why the thread cannot be taken."""
    row = session.execute(_HOLDER, (thread_id,)).fetchone()
    if row is None:
        return "", f"Thread {thread_id!r} was just released or deleted by another process. Try again."
    token, pid, started, boot, host, namespace = row
    own = _this_process()
    is_here = bool(boot) and (boot, host, namespace) == (own["boot"], own["host"], own["namespace"])
    is_gone = is_here and process_started(pid) != started
    where = "" if host == own["host"] else f" on {host}"
    text = (
        f"Thread {thread_id!r} is open in another process (pid {pid}{where}). Close it, or use "
        "`graph-agent approvals`."
    )
    if not is_here:
        text += f" If it was killed there, the thread is free {LENGTH_S:.0f} seconds later."
    return token if is_gone else "", text
