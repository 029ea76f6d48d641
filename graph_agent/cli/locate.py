"""Finds the thread a command is about, by reading the database only.

An existing thread keeps its own folder, wherever it is resumed from.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from graph_agent.config.paths import database_path
from graph_agent.errors import NothingYet, UsageError
from graph_agent.inspect.database import ReadOnlyDatabase
from graph_agent.inspect.ids import resolve
from graph_agent.inspect.threads import ThreadSummary, read_threads

__all__ = ["Found", "find", "known_thread", "reading", "require_folder"]


@dataclass(frozen=True, slots=True)
class Found:
    """A thread that exists, and the checkpoint to go on from when that is not its head."""

    thread_id: str
    workspace: Path
    checkpoint_id: str | None = None


@contextmanager
def reading(db: str | None) -> Iterator[ReadOnlyDatabase]:
    """The database of the flag, environment or data folder, for reading."""
    database = ReadOnlyDatabase.open(database_path(os.environ, db))
    try:
        yield database
    finally:
        database.close()


def find(text: str, db: str | None, workspace: Path) -> Found:
    """The thread a person means: thread or checkpoint id, a unique part of one, or nothing for the newest here.

    Raises:
        UnknownId: nothing fits, or several do.
        UsageError: the folder of the thread is gone.
    """
    with reading(db) as database:
        target = resolve(database, text, str(workspace), ("thread", "checkpoint"))
        [thread] = read_threads(database, "t.thread_id = ?", (target.thread_id,))
    is_older = target.kind == "checkpoint" and target.id != thread.checkpoint_id
    return _found(thread, target.id if is_older else None)


def known_thread(thread_id: str, db: str | None) -> Found | None:
    """The thread with exactly this id; None when it is still to be created."""
    try:
        with reading(db) as database:
            threads = read_threads(database, "t.thread_id = ?", (thread_id,))
    except NothingYet:
        return None
    return _found(threads[0], None) if threads else None


def _found(thread: ThreadSummary, checkpoint_id: str | None) -> Found:
    return Found(thread.thread_id, Path(thread.workspace), checkpoint_id)


def require_folder(folder: Path, thread_id: str) -> Path:
    """The folder, which must exist.

    Raises:
        UsageError: it does not.
    """
    if not folder.is_dir():
        raise UsageError(
            f"the folder {str(folder)!r} of thread {thread_id} is not there any more; "
            "move the thread to another one with --workspace DIR"
        )
    return folder
