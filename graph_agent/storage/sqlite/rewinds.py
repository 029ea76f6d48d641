"""Rewinds in SQLite: each is noted before the first file is touched, so that a killed one can be finished."""

import json
from collections.abc import Sequence
from dataclasses import asdict, astuple, replace
from typing import Any

from graph_agent.errors import UsageError
from graph_agent.ports import Clock, ExecutedAttempt, FileImage, FileRestoration, Rewind, SubAgentRewind
from graph_agent.ports.stored_text import json_text, storable
from graph_agent.storage import Connection
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.row_values import OWN_INTENT, intent_of, load_json

__all__ = ["SqliteRewinds", "read_rewind", "release_contents"]

_ATTEMPTS_SINCE = f"""
SELECT j.call_id, j.attempt, j.status, j.started_at, {OWN_INTENT}, l.record FROM journal j
LEFT JOIN call_log l ON l.thread_id = j.thread_id AND l.call_id = j.call_id
WHERE j.thread_id = ? AND j.started_at >= ? AND j.reverted = 0 AND j.status <> 'not_started'
ORDER BY j.started_at, j.rowid
"""  # noqa: S608 - names only
_SUB_AGENTS = """
SELECT thread_id, parent_call FROM threads WHERE parent_thread = ? AND parent_call IS NOT NULL ORDER BY rowid
"""
_PLAN = """
INSERT INTO rewinds (thread_id, checkpoint_id, head, scope, plan, status, at) VALUES (?, ?, ?, ?, ?, 'planned', ?)
"""
_ONE = "SELECT id, thread_id, checkpoint_id, head, scope, plan FROM rewinds WHERE thread_id = ? AND"
_HAS_IMPORTED = "SELECT 1 FROM rewinds WHERE thread_id = ? AND status = 'imported' LIMIT 1"
_EXISTS = "SELECT 1 FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?"
_MARK_CALL = "UPDATE journal SET reverted = ? WHERE thread_id = ? AND call_id = ? AND attempt = ?"
_FORGET_FILE = "DELETE FROM file_states WHERE thread_id = ? AND path = ?"
# Only the newest rewind can be undone, then the one before it: where one came from a checkpoint that was pruned, it
# and all before it are out of reach, and so is every rewind that was undone and every undo itself.
_RELEASE_CONTENTS = """
UPDATE rewinds SET plan = json_set(plan, '$.files', json('[]'))
WHERE thread_id = :thread_id AND status <> 'planned' AND json_array_length(plan, '$.files') > 0 AND (
    status = 'reverted' OR json_extract(plan, '$.reverts') IS NOT NULL OR id <= (
        SELECT max(r.id) FROM rewinds r
        WHERE r.thread_id = :thread_id AND r.status = 'done' AND r.scope <> 'files'
            AND json_extract(r.plan, '$.reverts') IS NULL
            AND NOT EXISTS (SELECT 1 FROM checkpoints c WHERE c.thread_id = r.thread_id
                            AND c.checkpoint_ns = '' AND c.checkpoint_id = r.head)))
"""
_END = "UPDATE rewinds SET status = ?, ended_at = ? WHERE id = ?"


class SqliteRewinds:
    """The port `Rewinds` over the database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def attempts_since(self, thread_id: str, at: str) -> Sequence[ExecutedAttempt]:
        key = (thread_id, at)
        rows = await self._database.run(lambda connection: connection.execute(_ATTEMPTS_SINCE, key).fetchall())
        return [
            ExecutedAttempt.from_record(
                attempt,
                intent_of(intent),
                load_json(record, dict) if record else {},
            )
            for *attempt, intent, record in rows
        ]

    async def sub_agents(self, thread_id: str) -> Sequence[tuple[str, str]]:
        key = (storable(thread_id),)
        return await self._database.run(lambda connection: connection.execute(_SUB_AGENTS, key).fetchall())

    async def plan(self, rewind: Rewind) -> Rewind:
        plan = json_text(
            {
                "files": [asdict(one) for one in rewind.files],
                "calls": rewind.calls,
                "reverts": rewind.reverts,
                "sub_agents": [astuple(one) for one in rewind.sub_agents],
            }
        )
        row = (rewind.thread_id, rewind.checkpoint_id, rewind.head, rewind.scope, plan, self._clock.now())
        targets = [(one.thread_id, one.checkpoint_id) for one in rewind.sub_agents if one.checkpoint_id]

        def insert(connection: Connection) -> int:
            # Nobody holds the threads of sub-agents while a person thinks about it: they may have been pruned.
            for target in targets:
                if connection.execute(_EXISTS, target).fetchone() is None:
                    raise UsageError(
                        f"the sub-agent's thread {target[0]} was pruned or deleted meanwhile. Nothing was changed; "
                        "start the rewind again"
                    )
            return connection.execute(_PLAN, row).lastrowid or 0

        return replace(rewind, number=await self._database.write(insert))

    async def finish(self, rewind: Rewind) -> None:
        """See `Rewinds.finish`. What its threads saw of these files is forgotten: they read them again."""
        now, is_reverted = self._clock.now(), int(rewind.reverts is None)
        threads = {rewind.thread_id: rewind.calls, **{one.thread_id: one.calls for one in rewind.sub_agents}}

        def finish(connection: Connection) -> None:
            for thread_id, calls in threads.items():
                connection.executemany(_MARK_CALL, [(is_reverted, thread_id, *call) for call in calls])
                connection.executemany(_FORGET_FILE, [(thread_id, storable(one.path)) for one in rewind.files])
            connection.execute(_END, ("done", now, rewind.number))
            if rewind.reverts is not None:
                connection.execute(_END, ("reverted", now, rewind.reverts))

        await self._database.write(finish)

    async def unfinished(self, thread_id: str) -> Rewind | None:
        return await self._first("status = 'planned'", thread_id)

    async def last(self, thread_id: str) -> Rewind | None:
        return await self._first("status = 'done' AND json_extract(plan, '$.reverts') IS NULL", thread_id)

    async def has_imported(self, thread_id: str) -> bool:
        key = (thread_id,)
        rows = await self._database.run(lambda connection: connection.execute(_HAS_IMPORTED, key).fetchall())
        return bool(rows)

    async def _first(self, condition: str, thread_id: str) -> Rewind | None:
        statement = f"{_ONE} {condition} ORDER BY id DESC LIMIT 1"
        row = await self._database.run(lambda connection: connection.execute(statement, (thread_id,)).fetchone())
        return None if row is None else read_rewind(row)


def release_contents(connection: Connection, thread_id: str) -> None:
    """Drop the file contents that rewinds of a thread stored and that no undo can reach any more."""
    connection.execute(_RELEASE_CONTENTS, {"thread_id": thread_id})


def read_rewind(row: Sequence[Any]) -> Rewind:
    """A rewind out of number, thread, checkpoint, head, scope and plan."""
    number, thread_id, checkpoint_id, head, scope, text = row
    plan = json.loads(text)
    files = tuple(
        FileRestoration(one["path"], FileImage(**one["current"]), FileImage(**one["target"]), one["new_folder"])
        for one in plan["files"]
    )
    # Those stored before there were sub-agents name none.
    sub_agents = tuple(
        SubAgentRewind(child, there, before, _calls(calls))
        for child, there, before, calls in plan.get("sub_agents", ())
    )
    calls = _calls(plan["calls"])
    return Rewind(thread_id, checkpoint_id, head, scope, files, calls, plan["reverts"], sub_agents, number)


def _calls(stored: Sequence[Sequence[Any]]) -> tuple[tuple[str, int], ...]:
    return tuple((call_id, attempt) for call_id, attempt in stored)
