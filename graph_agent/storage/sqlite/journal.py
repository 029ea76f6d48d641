"""The journal in SQLite: which attempts started, in which run, and how they ended; and their background shells.

Rows of the journal outlive their turn. A background shell has a row of its own, joined with the journal row of
the call that started it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Literal

from graph_agent.errors import InternalError
from graph_agent.ports import Blobs, Claim, Clock, Intent, JournalRow, Outcome
from graph_agent.ports.background import NewShell, ShellEnding, ShellRecord, boot_id
from graph_agent.ports.stored_text import json_text, storable
from graph_agent.storage import Connection
from graph_agent.storage.legacy_names import current_outcome
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.row_values import (
    IMPORTED_OWNER,
    OWN_INTENT,
    intent_of,
    load_json,
    outcome_of_row,
    require_valid_attempt,
)

__all__ = ["INLINE_BYTES", "SqliteJournal", "SqliteShells", "finish_claim", "insert_claim"]

INLINE_BYTES = 64 * 1024
"""An outcome longer than this goes to a blob; its row holds the reference."""

_COLUMNS = f"""
SELECT call_id, attempt, owner, status, started_at, ended_at, outcome,
    {OWN_INTENT}, process_group, process_started, boot_id FROM journal
"""  # noqa: S608 - names only
_ROWS = f"{_COLUMNS} WHERE thread_id = ? AND call_id = ? AND reverted = 0 ORDER BY attempt"
_REVERTED = f"""
{_COLUMNS} WHERE thread_id = :thread_id AND call_id IN (SELECT value FROM json_each(:ids)) AND reverted = 1
ORDER BY call_id, attempt
"""  # noqa: S608 - names only
_KNOWN = """
SELECT call_id FROM call_log WHERE thread_id = :thread_id AND call_id IN (SELECT value FROM json_each(:ids))
UNION SELECT call_id FROM journal WHERE thread_id = :thread_id AND call_id IN (SELECT value FROM json_each(:ids))
"""
_WRITTEN = f"""
SELECT json_extract(intent, '$.path') AS path FROM journal
WHERE thread_id = ? AND intent IS NOT NULL AND reverted = 0 AND status NOT IN ('error', 'not_started')
    AND substr(owner, 1, {len(IMPORTED_OWNER)}) <> '{IMPORTED_OWNER}'
GROUP BY path ORDER BY min(started_at)
"""  # noqa: S608 - names only
_CLAIM = """
INSERT INTO journal (thread_id, call_id, attempt, owner, status, started_at, intent)
VALUES (?, ?, ?, ?, 'executing', ?, ?)
"""
_PROCESS = """
UPDATE journal SET process_group = ?, process_started = ?, boot_id = ?
WHERE thread_id = ? AND call_id = ? AND attempt = ? AND status = 'executing' AND process_group IS NULL
"""
_FINISH = """
UPDATE journal SET status = ?, ended_at = ?, outcome = ?
WHERE thread_id = ? AND call_id = ? AND attempt = ? AND owner = ? AND status = 'executing' AND reverted = 0
    AND NOT EXISTS (SELECT 1 FROM journal AS later WHERE later.thread_id = journal.thread_id
        AND later.call_id = journal.call_id AND later.attempt > journal.attempt)
"""
_INTERRUPT = """
UPDATE journal SET status = ?, ended_at = ?
WHERE thread_id = ? AND call_id = ? AND attempt = ? AND owner = ? AND status = 'executing'
"""


def insert_claim(connection: Connection, row: Sequence[Any]) -> bool:
    """Claim an attempt in the transaction that is under way; False if this attempt or a later one exists.

    Args:
        row: thread, call, attempt, owner, time and intent.
    """
    # A reverted attempt counts here: its number must not be used again.
    newest = connection.execute(
        "SELECT max(attempt) FROM journal WHERE thread_id = ? AND call_id = ?", row[:2]
    ).fetchone()[0]
    if newest is not None and newest >= row[2]:
        return False
    connection.execute(_CLAIM, row)
    return True


def finish_claim(connection: Connection, values: Sequence[Any]) -> bool:
    """Record an outcome in the transaction that is under way; False if the claim was lost or has one.

    Args:
        values: status, time and outcome; thread, call, attempt and owner.
    """
    return connection.execute(_FINISH, values).rowcount == 1


class SqliteJournal:
    """The port `Journal` over the database. Big outcomes are stored as blobs before the row that names them."""

    def __init__(self, database: Database, blobs: Blobs, clock: Clock) -> None:
        self._database = database
        self._blobs = blobs
        self._clock = clock

    async def rows(self, thread_id: str, call_id: str) -> list[JournalRow]:
        return await self._database.quick_read(partial(self._rows, thread_id=thread_id, call_id=call_id))

    async def reverted(self, thread_id: str, call_ids: list[str]) -> list[JournalRow]:
        named = {"thread_id": storable(thread_id), "ids": json_text(call_ids)}
        return await self._database.run(
            lambda connection: [self._row(row) for row in connection.execute(_REVERTED, named)]
        )

    async def known_ids(self, thread_id: str, call_ids: list[str]) -> set[str]:
        named = {"thread_id": thread_id, "ids": json_text(call_ids)}
        return {row[0] for row in await self._database.rows(_KNOWN, named)}

    async def written_files(self, thread_id: str) -> list[str]:
        key = (storable(thread_id),)
        return await self._database.run(lambda connection: [row[0] for row in connection.execute(_WRITTEN, key)])

    async def claim(self, thread_id: str, call_id: str, attempt: int, owner: str, intent: Intent | None) -> Claim:
        key = (storable(thread_id), storable(call_id))
        row = (*key, attempt, owner, self._clock.now(), None if intent is None else json_text(asdict(intent)))

        def claim(connection: Connection) -> Claim:
            for old in self._rows(connection, *key):
                if old.is_finished:
                    return Claim(won=False, finished=old)
            return Claim(won=insert_claim(connection, row))

        return await self._database.write(claim, thread_id=thread_id)

    async def record_process(self, thread_id: str, call_id: str, attempt: int, group: int, started: str) -> None:
        """See `Journal.record_process`.

        Raises:
            InternalError: no such attempt is executing, or it has a group already; the command must not be let go.
        """
        values = (group, started, boot_id(), storable(thread_id), storable(call_id), attempt)
        recorded = await self._database.write(
            lambda connection: connection.execute(_PROCESS, values).rowcount, thread_id=thread_id
        )
        if not recorded:
            raise InternalError(
                f"attempt {attempt} of call {call_id!r} is not executing, or has a process group already; "
                f"group {group} cannot be recorded"
            )

    async def finish(self, thread_id: str, call_id: str, attempt: int, owner: str, outcome: Outcome) -> bool:
        text = json_text(asdict(outcome))
        key = (storable(thread_id), storable(call_id), attempt, owner)

        def finish(connection: Connection) -> bool:
            # Before the transaction: the blob must exist before a row names it, and nobody waits for its sync.
            stored = text if len(text) <= INLINE_BYTES else json_text({"blob": self._blobs.put(text.encode())})
            values = (outcome.status, self._clock.now(), stored, *key)
            with self._database.transaction(connection, thread_id=thread_id):
                return finish_claim(connection, values)

        return await self._database.run(finish)

    async def record_interruption(
        self, thread_id: str, call_id: str, attempt: int, owner: str, status: Literal["interrupted", "not_started"]
    ) -> None:
        values = (status, self._clock.now(), storable(thread_id), storable(call_id), attempt, owner)
        await self._database.write(lambda connection: connection.execute(_INTERRUPT, values), thread_id=thread_id)

    def _rows(self, connection: Connection, thread_id: str, call_id: str) -> list[JournalRow]:
        return list(map(self._row, connection.execute(_ROWS, (storable(thread_id), storable(call_id)))))

    def _row(self, row: Sequence[Any]) -> JournalRow:
        call_id, attempt, owner, status, started_at, ended_at, text, intent, group, group_started, boot = row
        require_valid_attempt((call_id, attempt, owner, status, started_at, ended_at))
        outcome: Mapping[str, Any] | None = None if text is None else load_json(text, dict)
        if outcome is not None and "blob" in outcome:
            outcome = current_outcome(json.loads(self._blobs.get(outcome["blob"])))
        return JournalRow(
            call_id=call_id,
            attempt=attempt,
            owner=owner,
            status=status,
            started_at=started_at,
            ended_at=ended_at,
            outcome=outcome_of_row(outcome),
            intent=intent_of(intent),
            process_group=group,
            process_started=group_started,
            extra={} if boot is None else {"boot_id": boot},
        )


_SHELLS = """
SELECT b.id, b.thread_id, b.call_id, b.attempt, b.command, b.folder, b.started_at, b.ended_at,
    ending, read_from, read_until, read_by,
    owner, status, journal.started_at, process_group, process_started, boot_id
FROM background_shells b LEFT JOIN journal USING (thread_id, call_id, attempt)
"""
_RUNNING = f"""
WITH RECURSIVE family (thread_id) AS (
    SELECT ? UNION SELECT threads.thread_id FROM threads JOIN family ON threads.parent_thread = family.thread_id
    WHERE threads.parent_call IS NOT NULL
)
{_SHELLS} WHERE b.ended_at IS NULL AND b.thread_id IN (SELECT thread_id FROM family) ORDER BY id
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
        texts = (storable(shell.command), storable(shell.folder), self._clock.now())
        row = (storable(shell.thread_id), storable(shell.call_id), shell.attempt, *texts)
        return await self._database.write(lambda connection: connection.execute(_ADD, row).lastrowid or 0)

    async def of_thread(self, thread_id: str) -> list[ShellRecord]:
        rows = await self._database.rows(f"{_SHELLS} WHERE b.thread_id = ? ORDER BY id", (storable(thread_id),))
        return list(map(_shell_record, rows))

    async def running(self, thread_id: str) -> list[ShellRecord]:
        return list(map(_shell_record, await self._database.rows(_RUNNING, (storable(thread_id),))))

    async def get(self, number: int) -> ShellRecord | None:
        rows = await self._database.rows(f"{_SHELLS} WHERE id = ?", (number,))
        return _shell_record(rows[0]) if rows else None

    async def read(self, number: int, call_id: str, start: int, until: int) -> None:
        row = (storable(call_id), start, until, number)
        await self._database.write(lambda connection: connection.execute(_READ, row))

    async def end(self, number: int, ending: ShellEnding) -> bool:
        row = (self._clock.now(), json_text(asdict(ending)), number)
        return await self._database.write(lambda connection: connection.execute(_END, row).rowcount == 1)


def _shell_record(row: Sequence[Any]) -> ShellRecord:
    number, thread_id, call_id, attempt, command, folder, started_at, ended_at, ending, *more = row
    read_from, read_until, read_by, owner, status, call_started_at, group, group_started, boot = more
    journal = None
    if owner is not None:
        extra = {} if boot is None else {"boot_id": boot}
        process = {"process_group": group, "process_started": group_started}
        journal = JournalRow(call_id, attempt, owner, status, call_started_at, **process, extra=extra)
    return ShellRecord(
        number,
        NewShell(thread_id, call_id, attempt, command, folder),
        started_at,
        journal,
        ended_at,
        None if ending is None else ShellEnding(**load_json(ending, dict)),
        read_from,
        read_until,
        read_by,
    )
