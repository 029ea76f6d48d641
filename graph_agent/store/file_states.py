"""What a thread last knew of each file, in SQLite: a write is refused when the file has changed since."""

from graph_agent.ports import Clock
from graph_agent.store.database import Database
from graph_agent.store.jsontext import storable

__all__ = ["SqliteFileStates"]


class SqliteFileStates:
    """The port `FileStates` over the database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def get(self, thread_id: str, path: str) -> str | None:
        """Digest of the content that the thread last read or wrote there; None when it never did."""
        statement = "SELECT sha256 FROM file_states WHERE thread_id = ? AND path = ?"
        key = (thread_id, storable(path))
        row = await self._database.glance(lambda connection: connection.execute(statement, key).fetchone())
        return None if row is None else str(row[0])

    async def set(self, thread_id: str, path: str, sha256: str) -> None:
        """Note what the thread has just read or written; a power failure may forget it, then it is read again."""
        statement = "INSERT OR REPLACE INTO file_states (thread_id, path, sha256, at) VALUES (?, ?, ?, ?)"
        row = (thread_id, storable(path), sha256, self._clock.now())
        await self._database.jot(lambda connection: connection.execute(statement, row))
