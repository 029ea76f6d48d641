"""What was allowed "always", in SQLite. A grant is inserted with the answer it came with, by `store.decisions`."""

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from graph_agent.ports import Grant
from graph_agent.store.database import Database
from graph_agent.store.jsontext import json_text, storable

__all__ = ["SqliteGrants", "insert_grant"]

_COLUMNS = "scope, rules, mode, thread_id, workspace, call_id, by, at, place, id"
_INSERT = """
INSERT INTO grants (scope, rules, mode, thread_id, workspace, call_id, by, at, place)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
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
_STANDING = f"SELECT {_COLUMNS} FROM grants WHERE id = ? AND revoked_at IS NULL"  # noqa: S608 - as above
_REVOKE = "UPDATE grants SET revoked_at = ?, revoked_by = ? WHERE id = ?"


class SqliteGrants:
    """The port `Grants` over the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def holding(self, thread_id: str, workspace: str) -> list[Grant]:
        """See `Grants.holding`."""
        where = {"thread_id": thread_id, "workspace": storable(workspace)}
        rows = await self._database.glance(lambda connection: connection.execute(_HOLDING, where).fetchall())
        return [_grant(row) for row in rows]

    async def revoke(self, grant_id: int, by: str, at: str) -> Grant | None:
        """See `Grants.revoke`."""

        def revoke(connection: sqlite3.Connection) -> Grant | None:
            row = connection.execute(_STANDING, (grant_id,)).fetchone()
            connection.execute(_REVOKE, (at, storable(by), grant_id if row else None))
            return _grant(row) if row else None

        return await self._database.write(revoke)


def insert_grant(connection: sqlite3.Connection, grant: Grant) -> None:
    """Store a grant in the transaction that is under way."""
    rules = json_text([{"text": rule, "exact": True} for rule in grant.rules])
    origin = (
        grant.thread_id,
        storable(grant.workspace),
        grant.call_id,
        storable(grant.by),
        grant.at,
        storable(grant.place),
    )
    connection.execute(_INSERT, (grant.scope, rules, grant.mode, *origin))


def _grant(row: Sequence[Any]) -> Grant:
    scope, rules, *rest = row
    return Grant(scope, tuple(str(rule["text"]) for rule in json.loads(rules)), *rest)
