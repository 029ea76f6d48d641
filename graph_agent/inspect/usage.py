"""What the model requests of threads used, as the database tells it."""

import json
from typing import Any

from graph_agent.inspect.database import ReadOnlyDatabase

__all__ = ["read_usages"]

_THERE = "SELECT count(*) FROM pragma_table_info('threads') WHERE name = 'usage'"


def read_usages(database: ReadOnlyDatabase) -> dict[str, dict[str, Any]]:
    """By thread, at its head; without the threads of which it was not noted."""
    if database.rows(_THERE) == [(0,)]:
        return {}
    rows = database.rows("SELECT thread_id, usage FROM threads WHERE usage IS NOT NULL")
    return {str(thread_id): used for thread_id, text in rows if isinstance(used := json.loads(text), dict)}
