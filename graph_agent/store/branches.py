"""Branches of a thread: where each left the one before, and which rows of the transcript it therefore shows.

A branch begins with a checkpoint that does not rest on the head, whoever stored it: an older checkpoint was taken
up again. Derived from the checkpoints alone: nothing has to be noted beforehand, and a kill leaves nothing over.
"""

import sqlite3

__all__ = ["NEWEST_SHOWN", "VISIBLE", "begin_branch", "count_turns"]

VISIBLE = """
WITH RECURSIVE line (branch, upto) AS (
    SELECT branch, 9223372036854775807 FROM threads WHERE thread_id = :thread_id
    UNION ALL
    SELECT b.parent_branch, min(b.from_seq, line.upto) FROM line JOIN branches b
    ON b.thread_id = :thread_id AND b.branch = line.branch
)
"""
"""Opens a statement: `line` has the thread's branch and those it came from, each with the last row shown of it."""

NEWEST_SHOWN = """
SELECT branch, seq FROM transcript WHERE thread_id = :thread_id AND checkpoint_id IN (SELECT id FROM line)
UNION ALL
SELECT parent_branch, from_seq FROM branches WHERE thread_id = :thread_id AND checkpoint_id IN (SELECT id FROM line)
UNION ALL
SELECT branch, seq FROM cuts WHERE thread_id = :thread_id AND checkpoint_id IN (SELECT id FROM line)
ORDER BY 2 DESC LIMIT 1
"""
"""Ends a statement whose `line` has ids of checkpoints: the branch and the last row the newest one shows."""

# A copy rests on the parent of the checkpoint that it copies. What that one brought counts too: it is told from
# other children of the parent by its lower step. An earlier branch on the line brings what it showed when it began.
_LEFT = f"""
WITH RECURSIVE line (id) AS (
    SELECT checkpoint_id FROM checkpoints
    WHERE thread_id = :thread_id AND checkpoint_ns = '' AND parent_checkpoint_id IS :parent_id
        AND checkpoint_id < :checkpoint_id AND json_extract(CAST(metadata AS TEXT), '$.step') < :step
    UNION SELECT :parent_id
    UNION SELECT c.parent_checkpoint_id FROM line JOIN checkpoints c
    ON c.thread_id = :thread_id AND c.checkpoint_ns = '' AND c.checkpoint_id = line.id
)
{NEWEST_SHOWN}"""  # noqa: S608 - names only
_BEGIN = """
INSERT INTO branches (thread_id, branch, parent_branch, from_seq, checkpoint_id, at)
SELECT :thread_id, coalesce(max(branch), 0) + 1, :parent_branch, :from_seq, :checkpoint_id, :at
FROM branches WHERE thread_id = :thread_id
"""
_ENTER = """
UPDATE threads SET branch = (SELECT max(branch) FROM branches WHERE thread_id = :thread_id)
WHERE thread_id = :thread_id
"""
_COUNT_TURNS = f"""
UPDATE threads SET turns = ({VISIBLE} SELECT count(*) FROM transcript t JOIN line ON t.branch = line.branch
    AND t.seq <= line.upto WHERE t.thread_id = :thread_id AND t.role = 'user')
WHERE thread_id = :thread_id
"""  # noqa: S608 - names only


def begin_branch(
    connection: sqlite3.Connection, place: tuple[str, str, str], parent_id: str | None, step: int
) -> None:
    """Begin a branch with the checkpoint of `place`: thread, checkpoint and time."""
    thread_id, checkpoint_id, at = place
    named = {"thread_id": thread_id, "checkpoint_id": checkpoint_id, "at": at, "parent_id": parent_id, "step": step}
    parent_branch, from_seq = connection.execute(_LEFT, named).fetchone() or (0, 0)
    connection.execute(_BEGIN, {**named, "parent_branch": parent_branch, "from_seq": from_seq})
    connection.execute(_ENTER, named)
    count_turns(connection, thread_id)


def count_turns(connection: sqlite3.Connection, thread_id: str) -> None:
    """Count the turns that the thread shows."""
    connection.execute(_COUNT_TURNS, {"thread_id": thread_id})
