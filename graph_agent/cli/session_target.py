"""Which thread, folder and settings a command opens; and how it opens them.

What reads the database or opens a session is imported late: a new chat's prompt must not wait for it.
"""

import asyncio
import importlib
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from graph_agent.cli.startup import restore_gc
from graph_agent.config.paths import database_path, folder_at
from graph_agent.errors import NothingYet, UnknownId, UsageError

if TYPE_CHECKING:
    from graph_agent.events import EventBus
    from graph_agent.inspect import ThreadSummary
    from graph_agent.session.session import Session


__all__ = [
    "Opener",
    "ResumePoint",
    "Target",
    "absolute_paths",
    "attach_files",
    "find_resume_point",
    "find_thread",
    "open_target",
    "require_folder",
    "resolve_target",
]

_MAX_ID_CHARS = 100

Opener = Callable[["EventBus"], Awaitable["Session"]]
"""Opens the session of a command with a bus that gets all its events."""


@dataclass(frozen=True, slots=True)
class Target:
    """The session to open."""

    workspace: Path
    thread_id: str | None = None
    """None: a new thread with a generated id."""
    exists: bool = False
    """Whether the thread existed before this command."""
    flags: Mapping[str, Any] = field(default_factory=dict)
    """The settings given on the command line, without those that were left out."""
    last_run: str = ""
    """Which process ran an unfinished thread last, as a sentence."""


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """An existing thread, and the checkpoint to resume from if it is not the newest one."""

    thread_id: str
    workspace: Path
    checkpoint_id: str | None = None
    last_run: str = ""
    """Which process ran the thread last, as a sentence; empty if the thread is idle."""


def absolute_paths(folders: Sequence[str] | None) -> tuple[str, ...] | None:
    """Folders of the command line as absolute paths; None if there are none."""
    return tuple(str(Path(folder).expanduser().absolute()) for folder in folders) if folders else None


def attach_files(text: str | None, target: Target) -> str | None:
    """The message with a mark and a mention of each file that `--image` names, as Ctrl-V adds them.

    Raises:
        UsageError: there is no message, or a file is not an image that can be sent, or cannot be mentioned.
    """
    files: Sequence[str] = target.flags.get("attached", ())
    if not files:
        return text
    if text is None or not text.strip():
        raise UsageError("--image needs a prompt to attach the file to.")
    from graph_agent.app.chat_input import label_file

    marks = []
    for number, file in enumerate(files, 1):
        if not Path(file).is_file():
            raise UsageError(f"--image {file!r} is not a file.")
        if not file.isprintable() or '"' in file:
            raise UsageError(f"--image {file!r} has a quote or a control character in its name. Rename the file.")
        marks.append(f"[image {number}: {label_file(Path(file))}]")
    return "\n\n".join([" ".join([text.rstrip(), *marks]), *(f'@"{file}"' for file in files)])


def resolve_target(
    flags: Mapping[str, Any], *, workspace: str | None, thread: str | None, resume: str | None
) -> Target:
    """The target of a command's options.

    Args:
        thread: the exact id of a thread, which is created if it does not exist.
        resume: an id of an existing thread or checkpoint; an empty one means the newest thread here.

    Raises:
        UnknownId: the id of `resume` does not exist.
        UsageError: the options contradict each other, a folder does not exist, or the id of a new thread could not
            be typed and printed on one line.
    """
    if thread is not None and resume is not None:
        raise UsageError("--thread and --resume cannot be combined: both name the thread.")
    here = folder_at(workspace or ".")
    if here is None:
        raise UsageError(f"--workspace {workspace!r} is not a folder.")
    given = {key: value for key, value in flags.items() if value is not None and value is not False}
    if thread is None and resume is None:
        return Target(here, flags=given)
    db = given.get("db")
    found = find_resume_point(resume, db, here) if resume is not None else find_thread(thread or "", db)
    if found is None:
        name = thread or ""
        if not name.strip() or name != name.strip() or not name.isprintable() or len(name) > _MAX_ID_CHARS:
            raise UsageError(
                f"--thread {name[:_MAX_ID_CHARS]!r} is not a valid id. "
                f"Use up to {_MAX_ID_CHARS} printable characters without surrounding blanks."
            )
        return Target(here, thread, exists=False, flags=given)
    if found.checkpoint_id is not None:
        given["checkpoint_id"] = found.checkpoint_id
    folder = here if workspace is not None else require_folder(found.workspace, found.thread_id)
    return Target(folder, found.thread_id, exists=True, flags=given, last_run=found.last_run)


def find_resume_point(text: str, db: str | None, workspace: Path) -> ResumePoint:
    """The thread of a thread or checkpoint id; with an empty text, the newest thread of the workspace.

    Raises:
        UnknownId: no id matches, or several do.
        NothingYet: there is no database.
    """
    from graph_agent.app.reader import read_database

    with read_database(database_path(os.environ, db)) as reader:
        target = reader.resolve(text, str(workspace), ("thread", "checkpoint"))
        thread = reader.thread(target.thread_id)
    is_older = target.kind == "checkpoint" and target.id != thread.checkpoint_id
    return _resume_point(thread, target.id if is_older else None)


def find_thread(thread_id: str, db: str | None) -> ResumePoint | None:
    """The thread with exactly this id; None if it does not exist yet."""
    from graph_agent.app.reader import read_database

    try:
        with read_database(database_path(os.environ, db)) as reader:
            return _resume_point(reader.thread(thread_id), None)
    except (NothingYet, UnknownId):
        return None


def _resume_point(thread: "ThreadSummary", checkpoint_id: str | None) -> ResumePoint:
    lease, last_run = thread.last_lease, ""
    if thread.status != "idle" and lease is not None:
        from graph_agent.cli.views.format import format_time_and_age

        end = f"ended {format_time_and_age(lease.ended_at)}" if lease.ended_at else "ended unexpectedly"
        started = format_time_and_age(lease.since)
        last_run = f"The previous session (pid {lease.pid} on {lease.host}, started {started}) {end}."
    return ResumePoint(thread.thread_id, Path(thread.workspace), checkpoint_id, last_run)


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


async def open_target(target: Target, bus: "EventBus") -> "Session":
    """Open the session. The graph and the model are imported in a thread, so that the terminal stays responsive."""
    app = await asyncio.to_thread(importlib.import_module, "graph_agent.app.opening")
    session = await app.open_session(
        workspace=target.workspace, thread_id=target.thread_id, flags=target.flags, bus=bus
    )
    restore_gc()
    return cast("Session", session)
