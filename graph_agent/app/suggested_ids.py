"""The ids of threads and checkpoints that completion offers; loads neither the reader nor the graph."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from graph_agent.storage import open_read_connection
from graph_agent.storage.suggested_ids import SuggestedCheckpoint, SuggestedThread, checkpoint_ids, thread_ids

__all__ = ["suggest_checkpoints", "suggest_threads"]


def suggest_threads(database: Path, typed: str, most: int) -> Iterator[SuggestedThread]:
    """The newest threads with a message whose ids begin or end with what was typed.

    Raises:
        NothingYet: there is no database.
        StorageError: it cannot be read.
    """
    with closing(open_read_connection(database)) as source:
        yield from thread_ids(source, typed, most)


def suggest_checkpoints(database: Path, typed: str, most: int) -> Iterator[SuggestedCheckpoint]:
    """The newest checkpoints of all threads whose ids begin or end with what was typed. Raises as above."""
    with closing(open_read_connection(database)) as source:
        yield from checkpoint_ids(source, typed, most)
