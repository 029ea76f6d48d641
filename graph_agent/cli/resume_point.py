"""Finds the thread a command is about, by reading the database only.

An existing thread keeps its own folder, wherever it is resumed from.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from graph_agent.app.reader import read_database
from graph_agent.config.paths import database_path
from graph_agent.errors import NothingYet, UnknownId, UsageError
from graph_agent.inspect import Lease, ThreadSummary

__all__ = ["ResumePoint", "find_resume_point", "find_thread", "require_folder"]


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """A thread that exists, and the checkpoint to go on from when that is not its head."""

    thread_id: str
    workspace: Path
    checkpoint_id: str | None = None
    last_life: str = ""
    """Who held the thread last and how that ended, in words; empty for a thread at rest."""


def find_resume_point(text: str, db: str | None, workspace: Path) -> ResumePoint:
    """The thread a person means: thread or checkpoint id, a unique part of one, or nothing for the newest here.

    Raises:
        UnknownId: nothing fits, or several do.
        NothingYet: there is no database.
    """
    with read_database(database_path(os.environ, db)) as reader:
        target = reader.resolve(text, str(workspace), ("thread", "checkpoint"))
        thread = reader.thread(target.thread_id)
    is_older = target.kind == "checkpoint" and target.id != thread.checkpoint_id
    return _found(thread, target.id if is_older else None)


def find_thread(thread_id: str, db: str | None) -> ResumePoint | None:
    """The thread with exactly this id; None when it is still to be created."""
    try:
        with read_database(database_path(os.environ, db)) as reader:
            return _found(reader.thread(thread_id), None)
    except (NothingYet, UnknownId):
        return None


def _found(thread: ThreadSummary, checkpoint_id: str | None) -> ResumePoint:
    last_life = "" if thread.status == "idle" or thread.last_lease is None else _told(thread.last_lease)
    return ResumePoint(thread.thread_id, Path(thread.workspace), checkpoint_id, last_life)


def _told(lease: Lease) -> str:
    end = f"ended at {lease.ended_at}" if lease.ended_at else "was broken off without an end"
    return f"The last life of this thread, process {lease.pid} on {lease.host}, began at {lease.since} and {end}."


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
