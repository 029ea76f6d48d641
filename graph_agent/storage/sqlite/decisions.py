"""Answers to questions and saved permissions, in SQLite.

Inserting an answer never runs anything: the process that holds the thread polls, or the next run reads it.
"""

from collections.abc import Sequence
from typing import Any

from graph_agent.errors import QuestionChanged
from graph_agent.ports import Answer, Grant, Question
from graph_agent.ports.stored_text import json_text, storable
from graph_agent.storage import Connection
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.row_values import grant_of, load_json

__all__ = ["SqliteDecisions", "SqliteGrants", "find_answer", "insert_answer", "insert_grant"]

_COLUMNS = "scope, rules, mode, thread_id, workspace, call_id, by, at, folder, effect, id"
_INSERT_GRANT = """
INSERT INTO grants (scope, rules, mode, thread_id, workspace, call_id, by, at, folder, effect)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_LINE = """
WITH RECURSIVE line (id) AS (SELECT :thread_id UNION
    SELECT t.parent_thread FROM threads t JOIN line ON t.thread_id = line.id WHERE t.parent_call IS NOT NULL)
SELECT id FROM line
"""
"""A thread and those it is a sub-agent under: what is allowed in one of them holds for its sub-agents."""
_HOLDING = f"""
SELECT {_COLUMNS} FROM grants WHERE revoked_at IS NULL AND (
    scope = 'user' OR workspace = :workspace AND (scope = 'project' OR scope = 'thread' AND thread_id IN ({_LINE}))
) ORDER BY id
"""  # noqa: S608 - only column names go in
_NOT_REVOKED = f"SELECT {_COLUMNS} FROM grants WHERE id = ? AND revoked_at IS NULL"  # noqa: S608 - as above
_REVOKE = "UPDATE grants SET revoked_at = ?, revoked_by = ? WHERE id = ?"


class SqliteGrants:
    """The port `Grants` over the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def in_force(self, thread_id: str, workspace: str) -> list[Grant]:
        where = {"thread_id": thread_id, "workspace": storable(workspace)}
        return list(map(grant_of, await self._database.rows(_HOLDING, where)))

    async def revoke(self, grant_id: int, by: str, at: str) -> Grant | None:
        def revoke(connection: Connection) -> Grant | None:
            row = connection.execute(_NOT_REVOKED, (grant_id,)).fetchone()
            if row is not None:
                connection.execute(_REVOKE, (at, storable(by), grant_id))
            return grant_of(row) if row else None

        return await self._database.write(revoke)


def insert_grant(connection: Connection, grant: Grant) -> None:
    """Store a grant in the transaction that is under way."""
    places = [{"folders": list(folders)} for folders in grant.folders] or [{}] * len(grant.rules)
    rules = json_text(
        [
            {"text": rule, "exact": rule not in grant.prefixes, **place}
            for rule, place in zip(grant.rules, places, strict=True)
        ]
    )
    place = (grant.thread_id, storable(grant.workspace), grant.call_id)
    row = (
        grant.scope,
        rules,
        grant.mode,
        *place,
        storable(grant.by),
        grant.at,
        storable(grant.folder),
        grant.effect,
    )
    connection.execute(_INSERT_GRANT, row)


_STANDING = """
SELECT args_digest, kind, by, at, args, reason, outside_sandbox FROM decisions
WHERE thread_id = ? AND call_id = ? AND attempt = ? AND question = ? AND superseded_at IS NULL
"""
_ASKS = """
SELECT 1 FROM call_log WHERE thread_id = :thread_id AND call_id = :call_id AND abandoned = 0
    AND status NOT IN ('success', 'error', 'cancelled')
    AND coalesce(CAST(json_extract(record, '$.attempt') AS INTEGER), 1) = :attempt
    AND coalesce(json_extract(record, '$.args_digest'), '') IN ('', :digest)
"""
"""Records of versions that stored no digest ask for whatever arguments they hold."""
_INSERT = """
INSERT INTO decisions (thread_id, call_id, attempt, question, args_digest, kind, args, reason, by, at,
    outside_sandbox)
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
_LATEST_APPROVAL = """
SELECT args_digest, kind, by, at, args, reason, outside_sandbox FROM decisions
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
        """Record an answer; one that was given for other arguments is superseded."""
        return await self._database.write(
            lambda connection: insert_answer(connection, thread_id, question, answer), thread_id=thread_id
        )

    async def insert_if_asked(self, thread_id: str, question: Question, answer: Answer) -> Answer:
        """See the port: the look at the question and the record of the answer are one transaction."""

        def insert(connection: Connection) -> Answer:
            if find_answer(connection, thread_id, question) is None:
                named = {"thread_id": thread_id, "call_id": question.call_id, "attempt": question.attempt}
                if connection.execute(_ASKS, {**named, "digest": question.args_digest}).fetchone() is None:
                    raise QuestionChanged(question.call_id)
            return insert_answer(connection, thread_id, question, answer)

        return await self._database.write(insert, thread_id=thread_id)

    async def find_answers(self, thread_id: str, questions: Sequence[Question]) -> dict[str, Answer]:
        def find_answers(connection: Connection) -> dict[str, Answer]:
            answers = {}
            for question in questions:
                answer = find_answer(connection, thread_id, question)
                if answer is not None:
                    answers[question.call_id] = answer
            return answers

        return await self._database.run(find_answers)

    async def latest_approval(self, thread_id: str, call_id: str, until: str) -> Answer | None:
        key = (thread_id, call_id, until)
        row = await self._database.run(lambda connection: connection.execute(_LATEST_APPROVAL, key).fetchone())
        return None if row is None else _answer(row)

    async def mark_applied(self, thread_id: str, questions: Sequence[Question], at: str) -> None:
        rows = [(at, *_key(thread_id, question), question.args_digest) for question in questions]
        await self._database.write(lambda connection: connection.executemany(_APPLY, rows), thread_id=thread_id)

    async def supersede(self, thread_id: str, call_ids: Sequence[str], at: str) -> None:
        """Supersede every answer to these calls: time travel asks again, an approval is never used twice."""
        named = {"thread_id": thread_id, "ids": json_text(list(call_ids)), "at": at}
        await self._database.write(lambda connection: connection.execute(_SUPERSEDE, named), thread_id=thread_id)


def find_answer(connection: Connection, thread_id: str, question: Question) -> Answer | None:
    """The answer that counts for this very question."""
    row = connection.execute(_STANDING, _key(thread_id, question)).fetchone()
    return _answer(row) if row is not None and row[0] == question.args_digest else None


def insert_answer(connection: Connection, thread_id: str, question: Question, answer: Answer) -> Answer:
    """Record an answer in the transaction that is under way; see `SqliteDecisions.insert`."""
    standing = find_answer(connection, thread_id, question)
    if standing is not None:
        return standing
    key = _key(thread_id, question)
    connection.execute(_SUPERSEDE_ONE, (answer.at, *key))
    arguments = None if answer.arguments is None else json_text(dict(answer.arguments))
    texts = (storable(answer.reason), storable(answer.by), answer.at, answer.outside_sandbox)
    connection.execute(_INSERT, (*key, question.args_digest, answer.kind, arguments, *texts))
    if answer.grant is not None:
        insert_grant(connection, answer.grant)
    return answer


def _key(thread_id: str, question: Question) -> tuple[str, str, int, str]:
    return thread_id, question.call_id, question.attempt, question.kind


def _answer(row: Sequence[Any]) -> Answer:
    _, kind, by, at, text, reason, outside = row
    arguments = None if text is None else load_json(text, dict)
    return Answer(kind=kind, by=by, at=at, arguments=arguments, reason=reason, outside_sandbox=bool(outside))
