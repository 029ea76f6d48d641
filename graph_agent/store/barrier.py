"""Proof that a checkpoint is on disk, read from the database itself: it holds in every durability mode."""

import asyncio
import time

from graph_agent.store.database import Database

__all__ = ["SqliteBarrier"]

_STATEMENT = "SELECT 1 FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?"
_POLL_S = 0.01


class SqliteBarrier:
    """The port `Barrier`. Checkpoints are stored in order, so one that stands proves all before it."""

    def __init__(self, database: Database, patience_s: float = 5.0) -> None:
        self._database = database
        self._patience_s = patience_s

    async def wait(self, thread_id: str, checkpoint_id: str) -> bool:
        """See `Barrier.wait`."""
        key = (thread_id, checkpoint_id)
        give_up = time.monotonic() + self._patience_s
        while True:
            if await self._database.glance(lambda connection: connection.execute(_STATEMENT, key).fetchone()):
                return True
            if time.monotonic() >= give_up:
                return False
            await asyncio.sleep(_POLL_S)
