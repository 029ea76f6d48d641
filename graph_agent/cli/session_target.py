"""Opens the session a command is about, loading the heavy parts only now."""

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
    """Which thread, in which folder, and with which flags."""

    workspace: Path
    thread_id: str | None = None
    """None: a new thread under an id of its own."""
    exists: bool = False
    """Whether the thread was there before this command."""
    flags: Mapping[str, Any] = field(default_factory=dict)
    """Only what was given on the command line."""
    last_life: str = ""
    """Who held an unfinished thread last, in words."""


def absolute_paths(folders: Sequence[str] | None) -> tuple[str, ...] | None:
    """Folders as they were named on the command line, wherever the process goes from here; None for none."""
    return tuple(str(Path(folder).expanduser().absolute()) for folder in folders) if folders else None


def resolve_target(
    flags: Mapping[str, Any], *, workspace: str | None, thread: str | None, resume: str | None
) -> Target:
    """The target of a command's options. `resume` takes any id of something that exists, `thread` a thread's own.

    Raises:
        UnknownId: what is to be resumed does not exist.
        UsageError: options exclude each other, or a folder is missing.
    """
    if thread is not None and resume is not None:
        raise UsageError("--thread and --resume name the thread twice; leave one of them out")
    here = Path(workspace or ".").expanduser().resolve()
    if not here.is_dir():
        raise UsageError(f"--workspace {workspace!r} is not a folder; create it or name another")
    given = {key: value for key, value in flags.items() if value is not None and value is not False}
    if thread is None and resume is None:
        return Target(here, flags=given)
    return _aim_at(here, given, thread, resume, moves=workspace is not None)


def _aim_at(here: Path, given: dict[str, Any], thread: str | None, resume: str | None, *, moves: bool) -> Target:
    # Loaded only where a thread is named: a new chat's prompt must not wait for what reads the database.
    from graph_agent.cli.resume_point import find_resume_point, find_thread, require_folder

    db = given.get("db")
    found = find_resume_point(resume, db, here) if resume is not None else find_thread(thread or "", db)
    if found is None:
        _require_name(thread or "")
        return Target(here, thread, exists=False, flags=given)
    if found.checkpoint_id is not None:
        given["checkpoint_id"] = found.checkpoint_id
    folder = here if moves else require_folder(found.workspace, found.thread_id)
    return Target(folder, found.thread_id, exists=True, flags=given, last_life=found.last_life)


def _require_name(thread: str) -> None:
    """A new thread's id is typed and printed again and again: on one line, and to be seen."""
    if not thread.strip() or thread != thread.strip() or not thread.isprintable() or len(thread) > _MAX_ID_CHARS:
        raise UsageError(
            f"--thread {thread[:_MAX_ID_CHARS]!r} is no name for a new thread: give up to {_MAX_ID_CHARS} visible "
            "characters without blanks around them, or leave it out"
        )


async def open_target(target: Target, bus: "EventBus") -> "Conversation":
    """Open the session; importing graph and model happens in a thread, so that the terminal stays alive."""
    app = await asyncio.to_thread(importlib.import_module, "graph_agent.app.opening")
    session = await app.open_session(
        workspace=target.workspace, thread_id=target.thread_id, flags=target.flags, bus=bus
    )
    restore_gc()
    return cast("Conversation", session)
