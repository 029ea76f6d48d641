"""Background shells in SQLite: one row each, joined with the journal row of the call that started it."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from graph_agent.ports import Clock, JournalRow
from graph_agent.ports.background import NewShell, ShellEnding, ShellRecord
from graph_agent.storage.json_text import json_text, storable
from graph_agent.storage.sqlite.database import Database

__all__ = ["SqliteShells"]

_COLUMNS = """
SELECT b.id, b.thread_id, b.call_id, b.attempt, b.command, b.folder, b.started_at, b.ended_at,
    ending, read_from, read_until, read_by,
    owner, status, journal.started_at, process_group, process_started, boot_id
FROM background_shells b LEFT JOIN journal USING (thread_id, call_id, attempt)
"""
_OF_THREAD = f"{_COLUMNS} WHERE b.thread_id = ? ORDER BY id"
_ONE = f"{_COLUMNS} WHERE id = ?"
_RUNNING = f"""
WITH RECURSIVE family (thread_id) AS (
    SELECT ? UNION SELECT threads.thread_id FROM threads JOIN family ON threads.parent_thread = family.thread_id
    WHERE threads.parent_call IS NOT NULL
)
{_COLUMNS} WHERE b.ended_at IS NULL AND b.thread_id IN (SELECT thread_id FROM family) ORDER BY id
"""  # noqa: S608 - names only
_ADD = """
INSERT INTO background_shells (thread_id, call_id, attempt, command, folder, started_at) VALUES (?, ?, ?, ?, ?, ?)
"""
_READ = "UPDATE background_shells SET read_by = ?, read_from = ?, read_until = ? WHERE id = ?"
_END = "UPDATE background_shells SET ended_at = ?, ending = ? WHERE id = ? AND ended_at IS NULL"


class SqliteShells:
    """The port `ShellRecords` over the database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(self, shell: NewShell) -> int:
        key = (storable(shell.thread_id), storable(shell.call_id), shell.attempt)
        row = (*key, storable(shell.command), storable(shell.folder), self._clock.now())
        number = await self._database.write(lambda connection: connection.execute(_ADD, row).lastrowid)
        return int(number or 0)

    async def of_thread(self, thread_id: str) -> list[ShellRecord]:
        return await self._select(_OF_THREAD, storable(thread_id))

    async def running(self, thread_id: str) -> list[ShellRecord]:
        return await self._select(_RUNNING, storable(thread_id))

    async def get(self, number: int) -> ShellRecord | None:
        return next(iter(await self._select(_ONE, number)), None)

    async def read(self, number: int, call_id: str, start: int, until: int) -> None:
        row = (storable(call_id), start, until, number)
        await self._database.write(lambda connection: connection.execute(_READ, row))

    async def end(self, number: int, ending: ShellEnding) -> bool:
        row = (self._clock.now(), json_text(asdict(ending)), number)
        return await self._database.write(lambda connection: connection.execute(_END, row).rowcount == 1)

    async def _select(self, query: str, key: str | int) -> list[ShellRecord]:
        def find(connection: sqlite3.Connection) -> list[ShellRecord]:
            return [_record(row) for row in connection.execute(query, (key,))]

        return await self._database.quick_read(find)


def _record(row: Sequence[Any]) -> ShellRecord:
    number, thread_id, call_id, attempt, command, folder, started_at, ended_at, ending, *more = row
    read_from, read_until, read_by, owner, status, begun_at, group, group_started, boot = more
    journal = None
    if owner is not None:
        extra = {} if boot is None else {"boot_id": boot}
        process = {"process_group": group, "process_started": group_started}
        journal = JournalRow(call_id, attempt, owner, status, begun_at, **process, extra=extra)
    return ShellRecord(
        number,
        NewShell(thread_id, call_id, attempt, command, folder),
        started_at,
        journal,
        ended_at,
        None if ending is None else ShellEnding(**json.loads(ending)),
        read_from,
        read_until,
        read_by,
    )
