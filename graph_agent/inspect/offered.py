"""Ids a person may be about to type: the newest, and those that what was typed begins or ends."""

from typing import NamedTuple

from graph_agent.inspect.database import ReadOnlyDatabase

__all__ = ["OfferedId", "read_offered_checkpoints"]


class OfferedId(NamedTuple):
    """An id and what it belongs to."""

    id: str
    title: str
    """Of the thread."""


def read_offered_checkpoints(database: ReadOnlyDatabase, typed: str, most: int) -> list[OfferedId]:
    """Checkpoints whose ids begin or end with what was typed, newest first; of all threads."""
    titles = dict(database.rows("SELECT thread_id, title FROM threads"))
    rows = database.rows(
        """SELECT checkpoint_id, min(thread_id) FROM checkpoints WHERE checkpoint_ns = ''
        AND (substr(checkpoint_id, 1, :n) = :typed OR substr(checkpoint_id, -:n) = :typed OR :n = 0)
        GROUP BY checkpoint_id ORDER BY checkpoint_id DESC LIMIT :most""",
        {"typed": typed, "n": len(typed), "most": most},
    )
    return [OfferedId(identifier, str(titles.get(thread_id) or thread_id)) for identifier, thread_id in rows]
