"""What to say about the id of a checkpoint that stood once and was pruned."""

from graph_agent.inspect.database import ReadOnlyDatabase

__all__ = ["pruned_answer"]

_SHORTEST = 4
_HAS_TABLE = "SELECT 1 FROM sqlite_schema WHERE name = 'pruned'"
_PRUNED = """
SELECT thread_id, checkpoint_id, (SELECT min(c.checkpoint_id) FROM checkpoints c WHERE c.thread_id = p.thread_id
    AND c.checkpoint_ns = '' AND c.checkpoint_id > p.checkpoint_id)
FROM pruned p WHERE (checkpoint_id = :id
    OR (length(:id) >= :shortest AND (substr(checkpoint_id, 1, :n) = :id OR substr(checkpoint_id, -:n) = :id)))
    AND (:thread = '' OR substr(thread_id, 1, length(:thread)) = :thread
        OR substr(thread_id, -length(:thread)) = :thread)
ORDER BY checkpoint_id = :id DESC, thread_id LIMIT 1
"""


def pruned_answer(database: ReadOnlyDatabase, text: str) -> str | None:
    """The sentence, with the next checkpoint that still stands; None when no such id was pruned.

    The text is an id, a part of one, or THREAD:ID.
    """
    if not database.rows(_HAS_TABLE):
        return None
    thread, _, own = text.rpartition(":")
    named = {"id": own, "n": len(own), "thread": thread, "shortest": _SHORTEST}
    rows = database.rows(_PRUNED, named)
    if not rows:
        return None
    [(thread_id, checkpoint_id, following)] = rows
    advice = (
        f"the next one that still stands is {following}"
        if following
        else f"`graph-agent inspect {thread_id}` shows what stands"
    )
    return f"checkpoint {checkpoint_id} of thread {thread_id} was pruned; {advice}."
