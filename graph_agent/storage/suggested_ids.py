"""The ids that completion offers: read with two statements, without the classes of the reader."""

from collections.abc import Iterator
from typing import NamedTuple

from graph_agent.storage import ReadSource

__all__ = ["SuggestedCheckpoint", "SuggestedThread", "checkpoint_ids", "thread_ids"]

_THREADS = """SELECT t.thread_id, t.title, t.updated_at, t.next_nodes = '[]' FROM threads t
    WHERE (:n = 0 OR substr(t.thread_id, 1, :n) = :typed OR substr(t.thread_id, -:n) = :typed)
    AND (t.checkpoint_id IS NOT NULL OR t.turns > 0 OR t.title <> '' OR t.parent_thread IS NOT NULL
        OR t.next_nodes <> '[]'
        OR EXISTS (SELECT 1 FROM inbox i WHERE i.thread_id = t.thread_id AND i.taken_at IS NULL))
    ORDER BY t.updated_at DESC, t.thread_id LIMIT :most"""
_CHECKPOINTS = """SELECT checkpoint_id, (SELECT title FROM threads t WHERE t.thread_id = found.thread_id), thread_id
    FROM (SELECT checkpoint_id, min(thread_id) AS thread_id FROM checkpoints WHERE checkpoint_ns = ''
        AND (:n = 0 OR substr(checkpoint_id, 1, :n) = :typed OR substr(checkpoint_id, -:n) = :typed)
        GROUP BY checkpoint_id ORDER BY checkpoint_id DESC LIMIT :most) found"""


class SuggestedThread(NamedTuple):
    """A thread in short."""

    thread_id: str
    title: str
    updated_at: str
    is_idle: bool
    """Whether it waits for nothing but a message; a sub-agent that nobody needs any more counts as not idle."""


class SuggestedCheckpoint(NamedTuple):
    """A checkpoint and its thread; of copies that forks have, the one of the first thread by id."""

    checkpoint_id: str
    title: str
    """Of the thread; empty if it has none."""
    thread_id: str


def thread_ids(source: ReadSource, typed: str, most: int) -> Iterator[SuggestedThread]:
    """Threads whose ids begin or end with what was typed, newest first; none without a message."""
    for thread_id, title, updated_at, is_idle in source.stream(_THREADS, _values(typed, most)):
        yield SuggestedThread(str(thread_id), str(title or ""), str(updated_at or ""), bool(is_idle))


def checkpoint_ids(source: ReadSource, typed: str, most: int) -> Iterator[SuggestedCheckpoint]:
    """Checkpoints of all threads whose ids begin or end with what was typed, newest first."""
    for checkpoint_id, title, thread_id in source.stream(_CHECKPOINTS, _values(typed, most)):
        yield SuggestedCheckpoint(str(checkpoint_id), str(title or ""), str(thread_id))


def _values(typed: str, most: int) -> dict[str, str | int]:
    return {"typed": typed, "n": len(typed), "most": most}
