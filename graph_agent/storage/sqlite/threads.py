"""Threads as the user chose them, their queued messages, and what each last knew of files, in SQLite."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from graph_agent.errors import StorageError, UnknownId
from graph_agent.ports import Clock, SystemClock
from graph_agent.ports.stored_text import json_text, storable
from graph_agent.storage import Connection, DatabaseLock, open_blobs, open_database
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.journal import SqliteJournal
from graph_agent.storage.sqlite.row_values import MODES, damaged_value, load_json

__all__ = [
    "CREATE_THREAD",
    "QUEUE_MESSAGE",
    "SqliteFileStates",
    "SqliteInbox",
    "Store",
    "ThreadRow",
    "ThreadTable",
    "open_store",
]


@dataclass(frozen=True, slots=True)
class ThreadRow:
    """One line of the list."""

    thread_id: str
    title: str
    workspace: str
    model: str
    mode: str
    created_at: str
    updated_at: str
    checkpoint_id: str | None
    """The head; None before the first checkpoint."""
    turns: int
    outcome: str
    """How the last turn ended; empty while one is under way."""
    parent_thread: str | None
    add_dirs: str = "[]"
    """JSON list of the folders it may work in beside its workspace."""
    model_choice: str = ""
    """JSON object of the model that was chosen for it; empty: that of the settings."""
    agent: str = ""
    """JSON object of the agent that was chosen for it, as it was defined then; empty for none."""

    @property
    def roots(self) -> tuple[str, ...]:
        """These folders."""
        return tuple(map(str, load_json(self.add_dirs, list)))


_SELECT = f"SELECT {', '.join(field.name for field in fields(ThreadRow))} FROM threads"  # noqa: S608 - names only
_NEWEST = f"""
{_SELECT} WHERE workspace = ? AND parent_call IS NULL
ORDER BY checkpoint_id IS NULL AND NOT EXISTS (SELECT 1 FROM inbox WHERE inbox.thread_id = threads.thread_id),
    updated_at DESC, rowid DESC LIMIT 1
"""  # noqa: S608 - names only
CREATE_THREAD = """
INSERT INTO threads (thread_id, workspace, model, mode, agent, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING
"""
_CREATE_CHILD = """
INSERT INTO threads (thread_id, title, workspace, add_dirs, model, mode, agent, created_at, updated_at,
    parent_thread, parent_call)
SELECT :thread_id, :title, workspace, add_dirs, model, mode, :agent, :now, :now, thread_id, :call_id
FROM threads WHERE thread_id = :parent ON CONFLICT DO NOTHING
"""
_DEPTH = """
WITH RECURSIVE line (id, depth) AS (
    SELECT ?, 0 UNION ALL
    SELECT t.parent_thread, depth + 1 FROM threads t JOIN line ON t.thread_id = line.id
    WHERE t.parent_call IS NOT NULL AND t.parent_thread IS NOT NULL AND depth < 100)
SELECT max(depth) FROM line
"""
# A fork copies the journal: what its newest attempt at a call shares with the original began there.
_BEGAN_ELSEWHERE = """
SELECT 1 FROM threads t WHERE thread_id = :id AND parent_thread IS NOT NULL AND parent_call IS NULL AND (
    NOT EXISTS (SELECT 1 FROM threads WHERE thread_id = t.parent_thread)
    OR EXISTS (SELECT 1 FROM journal its JOIN journal own USING (call_id, attempt, owner)
        WHERE its.thread_id = t.parent_thread AND own.thread_id = :id AND call_id = :call AND attempt =
            (SELECT max(attempt) FROM journal WHERE thread_id = :id AND call_id = :call)))
UNION ALL SELECT 1 FROM imported_checkpoints WHERE thread_id = :id LIMIT 1
"""
_FAMILY = """
WITH RECURSIVE line (id) AS (SELECT :id UNION
    SELECT t.parent_thread FROM threads t JOIN line ON t.thread_id = line.id WHERE t.parent_call IS NOT NULL),
family (id) AS (SELECT id FROM line UNION
    SELECT t.thread_id FROM threads t JOIN family ON t.parent_thread = family.id WHERE t.parent_call IS NOT NULL)
"""
"""A thread, those it is a sub-agent under, and every sub-agent of these."""
# From the journal: a call without a row never started. Its rows stay when a thread is compacted, pruned or rewound.
_EXECUTED_CALLS = f"""
{_FAMILY} SELECT DISTINCT coalesce(l.tool_name, ''), coalesce(json_extract(l.record, '$.arguments.command'), '')
FROM family JOIN journal j ON j.thread_id = family.id
LEFT JOIN call_log l ON l.thread_id = j.thread_id AND l.call_id = j.call_id WHERE j.status <> 'not_started'
"""  # noqa: S608 - names only
# A fork of an imported thread has its messages, also where the marks were pruned.
_IS_FROM_FILE = """
WITH RECURSIVE line (id) AS (SELECT :id UNION
    SELECT t.parent_thread FROM threads t JOIN line ON t.thread_id = line.id)
SELECT 1 FROM imported_checkpoints WHERE thread_id IN (SELECT id FROM line) LIMIT 1
"""
_IS_EMPTY = """
checkpoint_id IS NULL AND parent_thread IS NULL AND title = ''
    AND NOT EXISTS (SELECT 1 FROM inbox WHERE inbox.thread_id = threads.thread_id)
    AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.thread_id = threads.thread_id)
"""
"""It has no message, queued or sent, no task and no title, and is no sub-agent."""
_FIND_EMPTY = f"SELECT 1 FROM threads WHERE thread_id = ? AND {_IS_EMPTY}"  # noqa: S608 - names only
_DELETE_EMPTY = f"DELETE FROM threads WHERE thread_id = ? AND {_IS_EMPTY}"  # noqa: S608 - names only
_IS_IMPORTED = "SELECT 1 FROM imported_checkpoints WHERE thread_id = ? AND checkpoint_id = ?"


class ThreadTable:
    """The threads of one database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def create(self, thread_id: str, workspace: str, model: str, mode: str, agent: str = "") -> ThreadRow:
        """The thread of this id, added unless another process has just done so; the lock decides who may run it."""
        now = self._clock.now()
        row = (thread_id, storable(workspace), storable(model), mode, storable(agent), now, now)
        await self._database.write(lambda connection: connection.execute(CREATE_THREAD, row))
        return await self._require(thread_id)

    async def create_child(
        self, parent: str, call_id: str, thread_id: str, title: str, agent: str = ""
    ) -> ThreadRow:
        """The thread for the sub-agent of a call, in its parent's place; added and durable, unless it is there."""
        named = {"parent": parent, "call_id": call_id, "thread_id": thread_id, "title": storable(title)}
        row = {**named, "agent": storable(agent), "now": self._clock.now()}
        await self._database.write(lambda connection: connection.execute(_CREATE_CHILD, row))
        return await self._require(thread_id)

    async def delete_if_empty(self, thread_id: str, lock: DatabaseLock) -> bool:
        """Delete the thread, which this process holds, if it has no message: a chat that was opened and left."""
        with suppress(StorageError):  # Lists leave it out, and the next clean-up deletes it.
            if await self._first(_FIND_EMPTY, (thread_id,)):
                lock.mark_deleted()
                return await self._database.write(lambda connection: _delete_empty(connection, thread_id))
        return False

    async def depth(self, thread_id: str) -> int:
        """How many threads it is a sub-agent under."""
        return int((await self._first(_DEPTH, (thread_id,)))[0])

    async def may_have_started_elsewhere(self, thread_id: str, call_id: str) -> bool:
        """Whether a call may have begun in the thread this one was forked from, or before it came out of a file."""
        return bool(await self._first(_BEGAN_ELSEWHERE, {"id": thread_id, "call": call_id}))

    async def get(self, thread_id: str) -> ThreadRow | None:
        """The thread's line; None when there is no such thread."""
        row = await self._first(f"{_SELECT} WHERE thread_id = ?", (thread_id,))
        return _thread_row(row) if row else None

    async def newest(self, workspace: str) -> ThreadRow | None:
        """The thread of this workspace that was at work last; sub-agents' threads are left out.

        One in which nothing was said, a chat that was opened and left, is taken only for want of others.
        """
        row = await self._first(_NEWEST, (storable(workspace),))
        return _thread_row(row) if row else None

    async def is_imported(self, thread_id: str, checkpoint_id: str) -> bool:
        """Whether a checkpoint came out of a file, so that nobody here approved a call that is open in it."""
        return bool(await self._first(_IS_IMPORTED, (thread_id, checkpoint_id)))

    async def executed_calls(self, thread_id: str) -> set[tuple[str, str]]:
        """Tool and command of the calls that may have run in the thread, its sub-agents and those above it.

        An empty name stands for a call of which only the journal knows, an empty command for none.
        """
        where = {"id": thread_id}
        return await self._database.run(
            lambda connection: {(row[0], str(row[1])) for row in connection.execute(_EXECUTED_CALLS, where)}
        )

    async def is_from_file(self, thread_id: str) -> bool:
        """Whether the thread was imported, or one that it was forked from or is a sub-agent under."""
        return bool(await self._first(_IS_FROM_FILE, {"id": thread_id}))

    async def set_title(self, thread_id: str, title: str) -> None:
        """Rename the thread; the first message no longer gives the title."""
        await self._set("title", title, thread_id)

    async def set_mode(self, thread_id: str, mode: str) -> None:
        """Store the permission mode of the thread."""
        await self._set("mode", mode, thread_id)

    async def set_model(self, thread_id: str, label: str) -> None:
        """Store the model that answers from now on."""
        await self._set("model", label, thread_id)

    async def set_model_choice(self, thread_id: str, choice: Mapping[str, str]) -> None:
        """Store the model that was chosen for the thread."""
        await self._set("model_choice", json_text(dict(choice)), thread_id)

    async def set_workspace(self, thread_id: str, workspace: str) -> None:
        """Store where the thread works from now on."""
        await self._set("workspace", workspace, thread_id)

    async def set_roots(self, thread_id: str, folders: Sequence[str]) -> None:
        """Store the folders it may work in beside its workspace from now on."""
        await self._set("add_dirs", json_text(list(folders)), thread_id)

    async def _set(self, column: str, value: str, thread_id: str) -> None:
        statement, values = f"UPDATE threads SET {column} = ? WHERE thread_id = ?", (storable(value), thread_id)  # noqa: S608 - names only
        changed = await self._database.write(
            lambda connection: connection.execute(statement, values).rowcount, thread_id=thread_id
        )
        if not changed:
            raise _unknown(thread_id)

    async def _require(self, thread_id: str) -> ThreadRow:
        row = await self.get(thread_id)
        if row is None:
            raise _unknown(thread_id)
        return row

    async def _first(self, statement: str, values: Sequence[str] | Mapping[str, str]) -> Any:
        return await self._database.run(lambda connection: connection.execute(statement, values).fetchone())


def _delete_empty(connection: Connection, thread_id: str) -> bool:
    is_deleted = connection.execute(_DELETE_EMPTY, (thread_id,)).rowcount == 1
    if is_deleted:
        connection.execute("DELETE FROM leases WHERE thread_id = ?", (thread_id,))
    return is_deleted


def _thread_row(row: Sequence[Any]) -> ThreadRow:
    """A line of the list of threads.

    Raises:
        DamagedDatabase: what was chosen for the thread cannot be read, or is no mode.
    """
    thread = ThreadRow(*row)
    for text, kind in ((thread.add_dirs, list), (thread.model_choice or "{}", dict), (thread.agent or "{}", dict)):
        load_json(text, kind)
    if thread.mode not in MODES:
        raise damaged_value(f"Thread {thread.thread_id} has the mode {thread.mode!r:.60}")
    return thread


def _unknown(thread_id: str) -> UnknownId:
    return UnknownId(f"No thread has the id {thread_id!r}. List them with `graph-agent threads list`.")


_WAITING = """
SELECT id, text FROM inbox WHERE thread_id = ? AND taken_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM transcript WHERE transcript.thread_id = inbox.thread_id AND message_id = 'inbox-' || inbox.id
) AND urgent >= ? ORDER BY early_tokens IS NULL, urgent DESC, id
"""
# Above every number that a message of the thread was taken from: a deleted thread, or one that came out of a file,
# must not make a new message look as if it had been taken long ago.
QUEUE_MESSAGE = """
INSERT INTO inbox (id, thread_id, text, queued_by, queued_at, urgent)
SELECT 1 + max(coalesce((SELECT max(id) FROM inbox), 0), coalesce((
    SELECT max(CAST(substr(message_id, 7) AS INTEGER)) FROM transcript
    WHERE thread_id = :thread_id AND message_id >= 'inbox-0' AND message_id < 'inbox-:'
        AND length(message_id) <= 18), 0)),
    :thread_id, :text, :by, :at, :urgent
"""
_NOTE_EARLY_REQUEST = "UPDATE inbox SET early_tokens = ? WHERE thread_id = ? AND id = ?"
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

    async def queue(
        self, thread_id: str, text: str, by: str, *, is_urgent: bool = False, early_tokens: int | None = None
    ) -> int:
        """See `Inbox.queue`: durable when this returns; `early_tokens` as in `note_early_request`."""
        row = {"thread_id": thread_id, "text": storable(text), "by": storable(by), "at": self._clock.now()}
        values = {**row, "urgent": int(is_urgent)}

        def queue(connection: Connection) -> int:
            number = connection.execute(QUEUE_MESSAGE, values).lastrowid or 0
            if early_tokens is not None:
                connection.execute(_NOTE_EARLY_REQUEST, (early_tokens, thread_id, number))
            return number

        return await self._database.write(queue)

    async def mark_urgent(self, thread_id: str) -> int:
        def mark_urgent(connection: Connection) -> int:
            waiting = connection.execute(_WAITING, (thread_id, 0)).fetchall()
            statement = "UPDATE inbox SET urgent = 1 WHERE thread_id = ? AND taken_at IS NULL"
            connection.execute(statement, (thread_id,))
            return len(waiting)

        return await self._database.write(mark_urgent)

    async def waiting(self, thread_id: str, *, only_urgent: bool = False) -> list[tuple[int, str]]:
        values = (thread_id, int(only_urgent))
        rows = await self._database.run(lambda connection: connection.execute(_WAITING, values).fetchall())
        for number, text in rows:
            if not isinstance(text, str):
                raise damaged_value(f"Queued message {number} of thread {thread_id} holds {text!r:.40}")
        return rows

    async def remove(self, thread_id: str, message_id: int) -> bool:
        values = (thread_id, message_id)
        return await self._database.write(lambda connection: connection.execute(_TAKE_BACK, values).rowcount == 1)

    async def move_to_thread(self, thread_id: str, message_id: int, to: str) -> int | None:
        now = self._clock.now()

        def move_to_thread(connection: Connection) -> int | None:
            values = (thread_id, message_id)
            row = connection.execute(
                "SELECT text, queued_by, urgent FROM inbox WHERE thread_id = ? AND id = ?", values
            ).fetchone()
            if connection.execute(_TAKE_BACK, values).rowcount != 1:
                return None
            text, by, urgent = row
            # Under a number of its own: the other thread may have taken a message of this one's.
            moved = {"thread_id": to, "text": text, "by": by, "at": now, "urgent": urgent}
            return connection.execute(QUEUE_MESSAGE, moved).lastrowid

        return await self._database.write(move_to_thread)

    async def take(self, thread_id: str, message_id: int) -> None:
        statement = "UPDATE inbox SET taken_at = ? WHERE thread_id = ? AND id = ? AND taken_at IS NULL"
        values = (self._clock.now(), thread_id, message_id)
        await self._database.write(lambda connection: connection.execute(statement, values))

    async def note_early_request(self, thread_id: str, message_id: int, tokens: int | None) -> None:
        """Note, durably, that a request about a waiting message is sent now; None: nothing was paid in vain."""
        values = (tokens, thread_id, message_id)
        await self._database.write(lambda connection: connection.execute(_NOTE_EARLY_REQUEST, values))

    async def unused_requests(self, thread_id: str) -> list[int]:
        """See `FindUnusedRequests`."""
        statement = "SELECT early_tokens FROM inbox WHERE thread_id = ? AND early_tokens IS NOT NULL ORDER BY id"
        return [int(tokens) for (tokens,) in await self._database.rows(statement, (thread_id,))]


class SqliteFileStates:
    """The port `FileStates` over the database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def get(self, thread_id: str, path: str) -> str | None:
        """Digest of the content that the thread last read or wrote there; None when it never did."""
        statement = "SELECT sha256 FROM file_states WHERE thread_id = ? AND path = ?"
        key = (thread_id, storable(path))
        rows = await self._database.rows(statement, key)
        return str(rows[0][0]) if rows else None

    async def set(self, thread_id: str, path: str, sha256: str) -> None:
        """Note what the thread has just read or written; a power failure may forget it, then it is read again."""
        statement = "INSERT OR REPLACE INTO file_states (thread_id, path, sha256, at) VALUES (?, ?, ?, ?)"
        row = (thread_id, storable(path), sha256, self._clock.now())
        await self._database.quick_write(lambda connection: connection.execute(statement, row), thread_id=thread_id)


@dataclass(frozen=True, slots=True)
class Store:
    """The parts that share the one database."""

    database: Database
    clock: SystemClock
    blobs: FileBlobs
    journal: SqliteJournal
    threads: ThreadTable

    async def head(self, thread_id: str) -> str:
        """The newest checkpoint of a thread; empty if it has none."""
        found = await self.threads.get(thread_id)
        return found.checkpoint_id or "" if found else ""


async def open_store(path: Path) -> Store:
    """Open the database.

    Raises:
        StorageError: it cannot be used.
    """
    clock, database = SystemClock(), await open_database(path)
    blobs = open_blobs(path)
    return Store(database, clock, blobs, SqliteJournal(database, blobs, clock), ThreadTable(database, clock))
