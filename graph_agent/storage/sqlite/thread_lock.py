"""The lock of one thread: an flock that the kernel releases when its process dies, and a lease row for others.

The lock file is never unlinked, because a lock on an unlinked file excludes nobody; and its descriptor is
closed in every child process, because an orphan that inherited it would hold the thread. The lease is
information only. A lock file that is not empty says that the database once knew its thread.
"""

import asyncio
import hashlib
import os
import socket
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Any

from graph_agent.config.paths import lock_dir
from graph_agent.errors import InternalError, StorageError, ThreadHeld
from graph_agent.ports import Clock, Holder
from graph_agent.ports.background import boot_id, process_started
from graph_agent.ports.stored_text import storable
from graph_agent.storage import Connection
from graph_agent.storage.private_files import exclusive_lock, make_private_folder, open_private_file
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.database_file import connect_read_only

__all__ = ["FlockThreadLock", "end_lease", "exclusive_access", "holder", "lock_file", "lost_threads", "write_lease"]

_WRITE = """
INSERT INTO leases (thread_id, owner_token, pid, process_started, boot_id, host, since, ended_at)
VALUES (?, ?, ?, ?, ?, ?, ?, NULL)
ON CONFLICT DO UPDATE SET owner_token = excluded.owner_token, pid = excluded.pid,
    process_started = excluded.process_started,
    boot_id = excluded.boot_id, host = excluded.host, since = excluded.since, ended_at = NULL
"""
_END = "UPDATE leases SET ended_at = ? WHERE thread_id = ? AND owner_token = ?"
_OPEN = """
SELECT pid, host, since, owner_token, boot_id, process_started FROM leases WHERE thread_id = ? AND ended_at IS NULL
"""
_KNOWN = "SELECT thread_id FROM threads UNION SELECT thread_id FROM leases"
_KNOWN_MARK, _ENDING_MARK = b"known\n", b"ending\n"
_RETRIES = 25
_RETRIES_WHILE_ALIVE = 5
_RETRY_S = 0.02
"""The kernel frees a killed process's lock within milliseconds; a lock without a living holder is waited for."""
_ENDING_S, _ENDING_RETRY_S = 10.0, 0.1
"""How long to wait, and how often to try, while the holder is about to release the thread: a command that it stops
gets seconds to end."""


def write_lease(connection: Connection, thread_id: str, owner_token: str, since: str) -> None:
    """Note that this process holds the thread."""
    pid = os.getpid()
    host = storable(socket.gethostname())
    connection.execute(_WRITE, (thread_id, owner_token, pid, process_started(pid) or "", boot_id(), host, since))


def end_lease(connection: Connection, thread_id: str, owner_token: str, at: str) -> None:
    """Note that the run has released the thread; a later holder's lease is left alone."""
    connection.execute(_END, (at, thread_id, owner_token))


def holder(connection: Connection, thread_id: str) -> Holder | None:
    """Who holds the thread, or held it when the process died; None when it was never held or was released.

    Found out without touching the lock. A process on another host counts as alive: it cannot be checked.
    """
    row = connection.execute(_OPEN, (thread_id,)).fetchone()
    if row is None:
        return None
    pid, host, since, owner_token, boot, started = row
    is_here = host == storable(socket.gethostname())
    is_alive = not is_here or (boot == boot_id() and process_started(pid) == started)
    return Holder(pid=pid, host=host, since=since, owner_token=owner_token, is_alive=is_alive)


def lock_file(database: Path, thread_id: str) -> Path:
    """The thread's lock file; the id is hashed, so that any id makes a safe name."""
    return lock_dir(database) / f"{hashlib.sha256(thread_id.encode('utf-8', 'replace')).hexdigest()[:32]}.lock"


def lost_threads(execute: Callable[[str, Sequence[Any]], Iterable[Sequence[Any]]], database: Path) -> list[Path]:
    """The locks of threads that the database has lost: it knew them, and nobody deleted them."""
    known = {lock_file(database, str(thread_id)) for (thread_id,) in execute(_KNOWN, ())}
    return [lock for lock in lock_dir(database).glob("[0-9a-f]*.lock") if lock not in known and lock.stat().st_size]


class FlockThreadLock:
    """The port `ThreadLock`. One object holds one thread; acquiring it again renews the lease."""

    def __init__(self, database: Database, clock: Clock, on_wait: Callable[[str], None] = lambda _: None) -> None:
        self._database = database
        self._clock = clock
        self._on_wait = on_wait
        self._descriptor: int | None = None
        self._held = ("", "")

    async def acquire(
        self,
        thread_id: str,
        owner_token: str,
        on_lost: Callable[[], None] | None = None,  # noqa: ARG002 - an flock lasts as long as its process
    ) -> None:
        if self._descriptor is not None:
            if self._held[0] != thread_id:
                raise InternalError(
                    f"this lock holds thread {self._held[0]!r} and cannot take {thread_id!r} as well"
                )
            await self._write_lease(thread_id, owner_token)
            return
        is_complete = False
        try:
            await self._wait_for_lock(thread_id)
            await self._write_lease(thread_id, owner_token)
            is_complete = True
        finally:
            if not is_complete:
                self._unlock()

    async def release(self) -> None:
        """See `ThreadLock.release`. The lease ends first: once the lock is free the row may be another's."""
        if self._descriptor is None:
            return
        thread_id, owner_token = self._held
        try:
            at = self._clock.now()
            await self._database.write(lambda connection: end_lease(connection, thread_id, owner_token, at))
        except StorageError:
            # Reported already by whoever failed before, or not worth failing for: the lease of a process that ended
            # reads like that of one that died, and the lock is free all the same.
            return
        finally:
            self._unlock()

    async def _write_lease(self, thread_id: str, owner_token: str) -> None:
        self._held = (thread_id, owner_token)
        since = self._clock.now()
        await self._database.write(lambda connection: write_lease(connection, thread_id, owner_token, since))
        # Only now: a lock alone must not look like a thread that was lost.
        if self._descriptor is not None and not os.fstat(self._descriptor).st_size:
            with suppress(OSError):
                os.write(self._descriptor, _KNOWN_MARK)

    def mark_ending(self) -> None:
        """See `ThreadLock.mark_ending`."""
        if self._descriptor is None:
            return
        with suppress(OSError):
            if os.fstat(self._descriptor).st_size == len(_KNOWN_MARK):
                os.pwrite(self._descriptor, _ENDING_MARK, len(_KNOWN_MARK))

    def mark_deleted(self) -> None:
        """Note that the thread is being deleted, so that nobody takes it for lost."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)

    async def _wait_for_lock(self, thread_id: str) -> None:
        lock = lock_file(self._database.path, thread_id)
        for tried in range(_RETRIES):
            found = await self._database.run(lambda connection: self._try_lock(connection, thread_id, lock))
            if self._descriptor is not None:
                return
            # A process that was just killed is seen alive for some milliseconds.
            if found is not None and found.is_alive and tried >= _RETRIES_WHILE_ALIVE:
                where = f" on {found.host}" if found.host != storable(socket.gethostname()) else ""
                if await self._wait_for_end(thread_id, lock, f"pid {found.pid}{where}"):
                    return
                raise ThreadHeld(
                    f"Thread {thread_id!r} is open in another process (pid {found.pid}{where}). "
                    "Close it, or use `graph-agent approvals`."
                )
            await asyncio.sleep(_RETRY_S)
        raise ThreadHeld(
            f"Thread {thread_id!r} is locked by a process that left no lease. "
            f"Find it with `fuser {lock}` and close it."
        )

    async def _wait_for_end(self, thread_id: str, lock: Path, process: str) -> bool:
        """If the holder is about to release the thread, wait for that; returns whether the lock was taken."""
        is_ending = await asyncio.to_thread(lambda: _ENDING_MARK in lock.read_bytes())
        if is_ending:
            self._on_wait(f"Thread {thread_id} is still open in a session that is ending ({process}). Waiting …")
        until = time.monotonic() + (_ENDING_S if is_ending else 0)
        while self._descriptor is None and time.monotonic() < until:
            await asyncio.sleep(_ENDING_RETRY_S)
            await self._database.run(lambda connection: self._try_lock(connection, thread_id, lock))
        return self._descriptor is not None

    def _try_lock(self, connection: Connection, thread_id: str, lock: Path) -> Holder | None:
        """On the database's thread: take the lock, or return who has it."""
        make_private_folder(lock.parent)
        descriptor = open_private_file(lock)
        try:
            flock(descriptor, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return holder(connection, thread_id)
        self._descriptor = descriptor
        if os.fstat(descriptor).st_size > len(_KNOWN_MARK):  # What an earlier holder noted when it ended.
            os.ftruncate(descriptor, len(_KNOWN_MARK))
        return None

    def _unlock(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


@contextmanager
def exclusive_access(path: Path) -> Iterator[None]:
    """Hold the locks of every thread, and that of first openings.

    Raises:
        ThreadHeld: another process holds a thread.
    """
    folder = lock_dir(path)
    make_private_folder(folder)
    with ExitStack() as held:
        held.enter_context(exclusive_lock(folder / "open.lock"))
        for lock in sorted(folder.glob("[0-9a-f]*.lock")):
            descriptor = open_private_file(lock)
            held.callback(os.close, descriptor)
            try:
                flock(descriptor, LOCK_EX | LOCK_NB)
            except BlockingIOError as error:
                who = _holder_of(path, lock) or f"a process; find it with `fuser {lock}`"
                raise ThreadHeld(
                    f"{path} is in use by {who}. Close it first: what it still writes would be lost."
                ) from error
        yield


def _holder_of(path: Path, lock: Path) -> str | None:
    try:
        with closing(connect_read_only(path)) as database:
            for (thread_id,) in database.execute("SELECT thread_id FROM leases WHERE ended_at IS NULL"):
                found = holder(database, thread_id) if lock_file(path, thread_id) == lock else None
                if found is not None:
                    return f"process {found.pid}, which holds thread {thread_id!r} since {found.since}"
    except (sqlite3.Error, UnicodeDecodeError):
        # The damage may be in just that table.
        return None
    return None
