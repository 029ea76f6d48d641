"""The folders a thread may work in beside its workspace, as the database tells them."""

import json

from graph_agent.inspect.database import ReadOnlyDatabase

__all__ = ["read_roots"]

_THERE = "SELECT count(*) FROM pragma_table_info('threads') WHERE name = 'add_dirs'"


def read_roots(database: ReadOnlyDatabase, thread_id: str) -> tuple[str, ...]:
    """As they were given, resolved; none in a file from before there were any."""
    if database.rows(_THERE) == [(0,)]:
        return ()
    rows = database.rows("SELECT add_dirs FROM threads WHERE thread_id = ?", (thread_id,))
    return tuple(str(path) for (text,) in rows for path in json.loads(text))
