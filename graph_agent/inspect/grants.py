"""What was allowed "always", as the database tells it."""

import json

from graph_agent.inspect.database import ReadOnlyDatabase
from graph_agent.ports import Grant

__all__ = ["read_grants"]

_THERE = "SELECT count(*) FROM sqlite_schema WHERE name = 'grants'"
_STANDING = """
SELECT scope, rules, mode, thread_id, workspace, call_id, by, at, place, id FROM grants
WHERE revoked_at IS NULL ORDER BY id
"""


def read_grants(database: ReadOnlyDatabase) -> list[Grant]:
    """Every grant that stands, oldest first; none in a file from before there were any."""
    if database.rows(_THERE) == [(0,)]:
        return []
    return [
        Grant(scope, tuple(str(rule["text"]) for rule in json.loads(rules)), *rest)
        for scope, rules, *rest in database.rows(_STANDING)
    ]
