"""Which thread, folder and settings a command opens; and how it opens them, importing the heavy parts only then."""

import asyncio
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from graph_agent.cli.startup import restore_gc
from graph_agent.errors import UsageError

if TYPE_CHECKING:
    from graph_agent.cli.chat.conversation import Conversation
    from graph_agent.events import EventBus


__all__ = ["Target", "absolute_paths", "open_target", "resolve_target"]

_MAX_ID_CHARS = 100


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


def absolute_paths(folders: Sequence[str] | None) -> tuple[str, ...] | None:
    """Folders of the command line as absolute paths; None if there are none."""
    return tuple(str(Path(folder).expanduser().absolute()) for folder in folders) if folders else None


def resolve_target(
    flags: Mapping[str, Any], *, workspace: str | None, thread: str | None, resume: str | None
) -> Target:
    """The target of a command's options.

    Args:
        thread: the exact id of a thread, which is created if it does not exist.
        resume: an id of an existing thread or checkpoint; an empty one means the newest thread here.

    Raises:
        UnknownId: the id of `resume` does not exist.
        UsageError: the options contradict each other, or a folder does not exist.
    """
    if thread is not None and resume is not None:
        raise UsageError("--thread and --resume cannot be combined: both name the thread.")
    here = Path(workspace or ".").expanduser().resolve()
    if not here.is_dir():
        raise UsageError(f"--workspace {workspace!r} is not a folder.")
    given = {key: value for key, value in flags.items() if value is not None and value is not False}
    if thread is None and resume is None:
        return Target(here, flags=given)

    # Imported late: a new chat's prompt must not wait for what reads the database.
    from graph_agent.cli.resume_point import find_resume_point, find_thread, require_folder

    db = given.get("db")
    found = find_resume_point(resume, db, here) if resume is not None else find_thread(thread or "", db)
    if found is None:
        _check_new_id(thread or "")
        return Target(here, thread, exists=False, flags=given)
    if found.checkpoint_id is not None:
        given["checkpoint_id"] = found.checkpoint_id
    folder = here if workspace is not None else require_folder(found.workspace, found.thread_id)
    return Target(folder, found.thread_id, exists=True, flags=given, last_run=found.last_run)


def _check_new_id(thread: str) -> None:
    """Reject ids that cannot be typed and printed on one line."""
    if not thread.strip() or thread != thread.strip() or not thread.isprintable() or len(thread) > _MAX_ID_CHARS:
        raise UsageError(
            f"--thread {thread[:_MAX_ID_CHARS]!r} is not a valid id. "
            f"Use up to {_MAX_ID_CHARS} printable characters without surrounding blanks."
        )


async def open_target(target: Target, bus: "EventBus") -> "Conversation":
    """Open the session. The graph and the model are imported in a thread, so that the terminal stays responsive."""
    app = await asyncio.to_thread(importlib.import_module, "graph_agent.app.opening")
    session = await app.open_session(
        workspace=target.workspace, thread_id=target.thread_id, flags=target.flags, bus=bus
    )
    restore_gc()
    return cast("Conversation", session)
