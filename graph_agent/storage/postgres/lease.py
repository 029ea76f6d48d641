"""The lock of one thread on a server, for processes on any host.

The server's session of the process holds it. A session that ends, with its process or its link, gives it back, and
nothing that the process sends later is written: a new session does not hold the thread.
"""

import asyncio
import socket

from graph_agent.errors import InternalError, StorageError, ThreadHeld
from graph_agent.ports import Clock, Holder
from graph_agent.ports.stored_text import storable
from graph_agent.storage import Connection
from graph_agent.storage.postgres.connection import lock_number
from graph_agent.storage.postgres.database import PostgresDatabase
from graph_agent.storage.sqlite.thread_lock import end_lease, holder, write_lease

__all__ = ["PostgresThreadLock"]

_TAKE = "SELECT pg_try_advisory_lock(?)"
_GIVE_BACK = "SELECT pg_advisory_unlock(?)"
_RETRIES = 25
_RETRIES_WHILE_ALIVE = 5
_RETRY_S = 0.02
"""A server notices within milliseconds that a process of its own host was killed."""


class PostgresThreadLock:
    """The port `ThreadLock`. One object holds one thread; acquiring it again renews the lease."""

    def __init__(self, database: PostgresDatabase, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._held = ("", "")

    async def acquire(self, thread_id: str, owner_token: str) -> None:
        held = self._held[0]
        if held and held != thread_id:
            raise InternalError(f"this lock holds thread {held!r} and cannot take {thread_id!r} as well")
        if not held:
            await self._take(thread_id)
        self._held = (thread_id, owner_token)
        since = self._clock.now()
        await self._database.write(lambda connection: write_lease(connection, thread_id, owner_token, since))

    async def release(self) -> None:
        """See `ThreadLock.release`. The lease ends first: once the lock is free the row may be another's."""
        thread_id, owner_token = self._held
        if not thread_id:
            return
        self._held, at = ("", ""), self._clock.now()
        try:
            await self._database.write(lambda connection: end_lease(connection, thread_id, owner_token, at))
            await self._database.run(lambda connection: self._give_back(connection, thread_id))
        except StorageError:
            # The session is gone, and with it the lock; the lease reads like that of a process that died.
            return
        finally:
            self._database.holds.discard(thread_id)

    def mark_deleted(self) -> None:
        """Nothing beside the tables knows of a thread."""

    async def _take(self, thread_id: str) -> None:
        for tried in range(_RETRIES):
            found = await self._database.run(lambda connection: self._try(connection, thread_id))
            if thread_id in self._database.holds and found is None:
                return
            if found is not None and found.is_alive and tried >= _RETRIES_WHILE_ALIVE:
                where = f" on {found.host}" if found.host != storable(socket.gethostname()) else ""
                raise ThreadHeld(
                    f"Thread {thread_id!r} is open in another process (pid {found.pid}{where}). "
                    "Close it, or use `graph-agent approvals`."
                )
            await asyncio.sleep(_RETRY_S)
        raise ThreadHeld(
            f"Thread {thread_id!r} is locked by a session that left no lease. Find it in pg_stat_activity there."
        )

    def _try(self, connection: Connection, thread_id: str) -> Holder | None:
        """Take the lock, or return who has it."""
        if thread_id in self._database.holds:  # A session may take its own lock again, which another one must not.
            return holder(connection, thread_id)
        if connection.execute(_TAKE, (lock_number("thread", thread_id),)).fetchone()[0]:
            self._database.holds.add(thread_id)
            return None
        return holder(connection, thread_id)

    def _give_back(self, connection: Connection, thread_id: str) -> None:
        connection.execute(_GIVE_BACK, (lock_number("thread", thread_id),))
