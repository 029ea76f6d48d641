"""Answers to questions in SQLite. Inserting never runs anything: the thread's holder polls, the next life reads."""

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from graph_agent.ports import Answer, Question
from graph_agent.store.database import Database
from graph_agent.store.grants import insert_grant
from graph_agent.store.jsontext import json_text, storable

__all__ = ["SqliteDecisions"]

_STANDING = """
SELECT args_digest, kind, by, at, args, reason, outside FROM decisions
WHERE thread_id = ? AND call_id = ? AND attempt = ? AND question = ? AND superseded_at IS NULL
"""
_INSERT = """
INSERT INTO decisions (thread_id, call_id, attempt, question, args_digest, kind, args, reason, by, at, outside)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_SUPERSEDE_ONE = """
UPDATE decisions SET superseded_at = ?
WHERE thread_id = ? AND call_id = ? AND attempt = ? AND question = ? AND superseded_at IS NULL
"""
_SUPERSEDE = """
UPDATE decisions SET superseded_at = :at WHERE thread_id = :thread_id AND superseded_at IS NULL
    AND call_id IN (SELECT value FROM json_each(:ids))
"""
_LET_THROUGH = """
SELECT args_digest, kind, by, at, args, reason, outside FROM decisions
WHERE thread_id = ? AND call_id = ? AND question = 'approval' AND kind IN ('approve', 'edit', 'answer') AND at <= ?
ORDER BY id DESC LIMIT 1
"""
_APPLY = """
UPDATE decisions SET applied_at = ? WHERE thread_id = ? AND call_id = ? AND attempt = ? AND question = ?
    AND args_digest = ? AND superseded_at IS NULL AND applied_at IS NULL
"""


class SqliteDecisions:
    """The port `Decisions` over the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def insert(self, thread_id: str, question: Question, answer: Answer) -> Answer:
        """See `Decisions.insert`. An older answer that was given to other arguments does not stand in the way."""

        def insert(connection: sqlite3.Connection) -> Answer:
            key = _key(thread_id, question)
            row = connection.execute(_STANDING, key).fetchone()
            if row is not None and row[0] == question.digest:
                return _answer(row)
            if row is not None:
                connection.execute(_SUPERSEDE_ONE, (answer.at, *key))
            arguments = None if answer.arguments is None else json_text(dict(answer.arguments))
            text = (answer.kind, arguments, storable(answer.reason), storable(answer.by), answer.at, answer.outside)
            connection.execute(_INSERT, (*key, question.digest, *text))
            if answer.grant is not None:
                insert_grant(connection, answer.grant)
            return answer

        return await self._database.write(insert)

    async def standing(self, thread_id: str, questions: Sequence[Question]) -> dict[str, Answer]:
        """See `Decisions.standing`."""

        def standing(connection: sqlite3.Connection) -> dict[str, Answer]:
            rows = {
                question: connection.execute(_STANDING, _key(thread_id, question)).fetchone()
                for question in questions
            }
            return {
                question.call_id: _answer(row)
                for question, row in rows.items()
                if row is not None and row[0] == question.digest
            }

        return await self._database.run(standing)

    async def let_through(self, thread_id: str, call_id: str, until: str) -> Answer | None:
        """See `Decisions.let_through`."""
        key = (thread_id, call_id, until)
        row = await self._database.run(lambda connection: connection.execute(_LET_THROUGH, key).fetchone())
        return None if row is None else _answer(row)

    async def mark_applied(self, thread_id: str, questions: Sequence[Question], at: str) -> None:
        """See `Decisions.mark_applied`."""
        rows = [(at, *_key(thread_id, question), question.digest) for question in questions]
        await self._database.write(lambda connection: connection.executemany(_APPLY, rows))

    async def supersede(self, thread_id: str, call_ids: Sequence[str], at: str) -> None:
        """Take back every answer to these calls: time travel asks again, an approval is never used twice."""
        named = {"thread_id": thread_id, "ids": json_text(list(call_ids)), "at": at}
        await self._database.write(lambda connection: connection.execute(_SUPERSEDE, named))


def _key(thread_id: str, question: Question) -> tuple[str, str, int, str]:
    return thread_id, question.call_id, question.attempt, question.kind


def _answer(row: Sequence[Any]) -> Answer:
    _, kind, by, at, arguments, reason, outside = row
    return Answer(
        kind=kind,
        by=by,
        at=at,
        arguments=None if arguments is None else json.loads(arguments),
        reason=reason,
        outside=bool(outside),
    )
