"""Find the thread that a command resumes, by reading the database."""

import os
from dataclasses import dataclass
from pathlib import Path

from graph_agent.app.reader import read_database
from graph_agent.config.paths import database_path
from graph_agent.errors import NothingYet, UnknownId, UsageError
from graph_agent.inspect import ThreadSummary

__all__ = ["ResumePoint", "find_resume_point", "find_thread", "require_folder"]


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """An existing thread, and the checkpoint to resume from if it is not the newest one."""

    thread_id: str
    workspace: Path
    checkpoint_id: str | None = None
    last_run: str = ""
    """Which process ran the thread last, as a sentence; empty if the thread is idle."""


def find_resume_point(text: str, db: str | None, workspace: Path) -> ResumePoint:
    """The thread of a thread or checkpoint id; with an empty text, the newest thread of the workspace.

    Raises:
        UnknownId: no id matches, or several do.
        NothingYet: there is no database.
    """
    with read_database(database_path(os.environ, db)) as reader:
        target = reader.resolve(text, str(workspace), ("thread", "checkpoint"))
        thread = reader.thread(target.thread_id)
    is_older = target.kind == "checkpoint" and target.id != thread.checkpoint_id
    return _resume_point(thread, target.id if is_older else None)


def find_thread(thread_id: str, db: str | None) -> ResumePoint | None:
    """The thread with exactly this id; None if it does not exist yet."""
    try:
        with read_database(database_path(os.environ, db)) as reader:
            return _resume_point(reader.thread(thread_id), None)
    except (NothingYet, UnknownId):
        return None


def require_folder(folder: Path, thread_id: str) -> Path:
    """The workspace of a thread.

    Raises:
        UsageError: the folder does not exist.
    """
    if not folder.is_dir():
        raise UsageError(
            f"The workspace {str(folder)!r} of thread {thread_id} does not exist. "
            "Move the thread to another folder with --workspace DIR."
        )
    return folder


def _resume_point(thread: ThreadSummary, checkpoint_id: str | None) -> ResumePoint:
    lease, last_run = thread.last_lease, ""
    if thread.status != "idle" and lease is not None:
        end = f"ended at {lease.ended_at}" if lease.ended_at else "ended unexpectedly"
        last_run = f"The previous session (pid {lease.pid} on {lease.host}, started at {lease.since}) {end}."
    return ResumePoint(thread.thread_id, Path(thread.workspace), checkpoint_id, last_run)
