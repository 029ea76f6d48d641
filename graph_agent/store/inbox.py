"""Messages that wait for their turn, in SQLite."""

from sqlite3 import Connection

from graph_agent.ports import Clock
from graph_agent.store.database import Database
from graph_agent.store.jsontext import storable

__all__ = ["SqliteInbox"]

_WAITING = """
SELECT id, text FROM inbox WHERE thread_id = ? AND taken_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM transcript WHERE transcript.thread_id = inbox.thread_id AND message_id = 'inbox-' || inbox.id
) ORDER BY id
"""
# Above every number that a message of the thread was taken from: a deleted thread, or one that came out of a file,
# must not make a new message look as if it had been taken long ago.
_QUEUE = """
INSERT INTO inbox (id, thread_id, text, queued_by, queued_at)
SELECT 1 + max(coalesce((SELECT max(id) FROM inbox), 0), coalesce((
    SELECT max(CAST(substr(message_id, 7) AS INTEGER)) FROM transcript
    WHERE thread_id = :thread_id AND message_id GLOB 'inbox-[0-9]*' AND length(message_id) <= 18), 0)),
    :thread_id, :text, :by, :at
"""


_TAKE_BACK = """
DELETE FROM inbox WHERE thread_id = ? AND id = ? AND taken_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM transcript WHERE transcript.thread_id = inbox.thread_id AND message_id = 'inbox-' || inbox.id
)
"""


class SqliteInbox:
    """The port `Inbox` over the database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def queue(self, thread_id: str, text: str, by: str) -> int:
        """See `Inbox.queue`: durable when this returns."""
        row = {"thread_id": thread_id, "text": storable(text), "by": storable(by), "at": self._clock.now()}
        return await self._database.write(lambda connection: connection.execute(_QUEUE, row).lastrowid or 0)

    async def waiting(self, thread_id: str) -> list[tuple[int, str]]:
        """See `Inbox.waiting`."""
        return await self._database.run(lambda connection: connection.execute(_WAITING, (thread_id,)).fetchall())

    async def take_back(self, thread_id: str, message_id: int) -> bool:
        """See `Inbox.take_back`."""
        values = (thread_id, message_id)
        return await self._database.write(lambda connection: connection.execute(_TAKE_BACK, values).rowcount == 1)

    async def hand_over(self, thread_id: str, message_id: int, to: str) -> int | None:
        """See `Inbox.hand_over`."""
        now = self._clock.now()

        def hand_over(connection: Connection) -> int | None:
            values = (thread_id, message_id)
            row = connection.execute(
                "SELECT text, queued_by FROM inbox WHERE thread_id = ? AND id = ?", values
            ).fetchone()
            if connection.execute(_TAKE_BACK, values).rowcount != 1:
                return None
            text, by = row
            # Under a number of its own: the other thread may have taken a message of this one's.
            return connection.execute(_QUEUE, {"thread_id": to, "text": text, "by": by, "at": now}).lastrowid

        return await self._database.write(hand_over)

    async def take(self, thread_id: str, message_id: int) -> None:
        """See `Inbox.take`."""
        statement = "UPDATE inbox SET taken_at = ? WHERE thread_id = ? AND id = ? AND taken_at IS NULL"
        values = (self._clock.now(), thread_id, message_id)
        await self._database.write(lambda connection: connection.execute(statement, values))
