"""Add, list, cancel and retry tasks; `graph_agent.worker.runner` runs them."""

import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, assert_never

from graph_agent.app.project_trust import settings_at
from graph_agent.app.reader import read_database
from graph_agent.config.paths import ServerPath, folder_at, own_command
from graph_agent.errors import NothingYet, UnknownId, UsageError
from graph_agent.inspect import ThreadSummary
from graph_agent.inspect.calls import is_alive
from graph_agent.ports import SystemClock
from graph_agent.ports.stored_text import storable
from graph_agent.storage import open_database
from graph_agent.storage.sqlite.tasks import NewTask, Task, TaskTable, WorkerRow, read_tasks, read_workers
from graph_agent.worker.worktrees import branch_for, require_address, require_repository

__all__ = [
    "Overview",
    "TaskRequest",
    "TaskStatus",
    "TaskView",
    "add_task",
    "cancel_task",
    "find_task",
    "is_answered",
    "list_tasks",
    "live_workers",
    "overview",
    "retry_task",
    "short_id",
]

TaskStatus = Literal[
    "scheduled", "queued", "running", "waiting", "interrupted", "paused", "done", "failed", "cancelled"
]
"""scheduled: its time has not come. waiting: for an answer. interrupted: for a decision about an interrupted call.
paused: started; the next worker continues it."""

_MIN_ID_CHARS = 4
_SHORT_ID = 8


@dataclass(frozen=True, slots=True)
class TaskRequest:
    """A task as a person asks for it."""

    prompt: str
    workspace: Path
    flags: Mapping[str, Any]
    """Of `open_session`; `agent` among them."""
    in_worktree: bool = False
    repository: str = ""
    """See `NewTask.repository`."""
    revision: str = ""
    not_before: datetime | None = None
    every: int = 0


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task with its status, which depends on its thread."""

    task: Task
    status: TaskStatus
    thread: ThreadSummary | None
    """None if the thread was deleted."""


@dataclass(frozen=True, slots=True)
class Overview:
    """Everything that `top` shows."""

    workers: list[WorkerRow]
    """Those whose process is alive."""
    tasks: list[TaskView]
    """Open tasks first, then the ones that ended most recently."""
    threads: list[ThreadSummary]
    """Those that a process holds or that wait for a person."""


async def add_task(database: Path, request: TaskRequest) -> Task:
    """Queue a task for a worker.

    Raises:
        UsageError: there is no prompt or folder, no such agent, or no repository for a worktree.
        ConfigError: a setting is wrong.
        StorageError: the database cannot be used.
    """
    if not request.prompt.strip():
        raise UsageError("The prompt of the task is empty. Say what to do.")
    folder = folder_at(request.workspace)
    if folder is None:
        raise UsageError(f"The workspace {str(request.workspace)!r} is not a folder. Create it, or choose another.")
    if storable(str(folder)) != str(folder):
        raise UsageError(
            f"The name of {str(folder)!r} is not UTF-8, and a task keeps it as text. Rename the folder."
        )
    flags = {name: value for name, value in request.flags.items() if value not in (None, False, ())}
    given = {"model.name": flags.get("model"), "model.effort": flags.get("effort"), "mode": flags.get("mode")}
    settings = settings_at(folder, {key: value for key, value in given.items() if value is not None})
    agent = str(flags.pop("agent", "") or "")
    stored_agent = ""
    if agent:
        stored_agent, settings = _stored_agent(agent, folder, settings)
    address = require_address(request.repository) if request.repository else ""
    if request.in_worktree:
        require_repository(folder)
    new = NewTask(
        request.prompt,
        address or str(folder),
        mode="default" if settings.mode == "bypassPermissions" else settings.mode,
        agent=stored_agent,
        flags=flags,
        branch=branch_for(request.prompt) if request.in_worktree or address else "",
        host=socket.gethostname() if isinstance(database, ServerPath) and not address else "",
        repository=address,
        revision=storable(request.revision),
        not_before=request.not_before.astimezone(UTC).isoformat() if request.not_before else "",
        every=request.every,
    )
    async with _task_table(database) as tasks:
        return await tasks.add(new, f"pid {os.getpid()}")


def _stored_agent(name: str, folder: Path, settings: Any) -> tuple[str, Any]:
    from graph_agent.app.named_agents import agent_of_thread, agent_to_json  # noqa: PLC0415 - loads every tool
    from graph_agent.app.toolset import full_registry  # noqa: PLC0415 - as above
    from graph_agent.config.sources import stricter_mode  # noqa: PLC0415 - as above

    registry, _unusable = full_registry(folder, settings)
    agent = agent_of_thread(None, name, settings, registry)
    mode = stricter_mode(agent.mode, settings.mode)
    return agent_to_json(agent), settings.model_copy(update={"mode": mode})


def list_tasks(database: Path) -> list[TaskView]:
    """Every task, newest first.

    Raises:
        StorageError: the database cannot be read.
    """
    tasks = read_tasks(database)
    if not tasks:
        return []
    with read_database(database) as reader:
        threads = {thread.thread_id: thread for thread in reader.threads()}
    now = SystemClock().now()
    return [
        TaskView(task, _status(task, threads.get(task.thread_id), now), threads.get(task.thread_id))
        for task in tasks
    ]


def _status(task: Task, thread: ThreadSummary | None, now: str) -> TaskStatus:
    match task.state:
        case "done" | "failed" | "cancelled" as ended:
            return ended
        case "queued":
            if task.not_before > now:
                return "scheduled"
            # Of a task that is retried while its thread has a question.
            return _waits_for(thread) or "queued"
        case "started":
            if thread is None:
                return "paused"
            return _waits_for(thread) or ("running" if thread.holder is not None else "paused")
        case _ as never:
            assert_never(never)


def _waits_for(thread: ThreadSummary | None) -> Literal["waiting", "interrupted"] | None:
    """What a person has to do before its thread can go on."""
    if thread is None or is_answered(thread):
        return None
    return thread.status if thread.status in ("waiting", "interrupted") else None


def is_answered(thread: ThreadSummary) -> bool:
    """Whether all questions of the thread have answers that it has not applied yet."""
    return bool(thread.answered_calls) and not thread.pending_approvals and not thread.interrupted_calls


def short_id(identifier: str) -> str:
    """The end of an id, as tables show it."""
    return identifier[-_SHORT_ID:]


def find_task(database: Path, text: str) -> TaskView:
    """The task with this id, prefix or suffix of four or more characters, or with this thread.

    Raises:
        UnknownId: no task matches, or several do.
    """
    views = list_tasks(database)
    matches = [
        view
        for view in views
        if text in (view.task.task_id, view.task.thread_id)
        or (len(text) >= _MIN_ID_CHARS and _begins_or_ends(view.task.task_id, text))
    ]
    if len(matches) == 1:
        return matches[0]
    if matches:
        ids = ", ".join(view.task.task_id for view in matches)
        raise UnknownId(f"{text!r} matches several tasks: {ids}. Type more of the id.")
    raise UnknownId(f"No task matches {text!r}. List them with `{own_command()} tasks list`.")


def _begins_or_ends(identifier: str, text: str) -> bool:
    """Whether the text begins the id, or the end of it that tables show, or ends it."""
    return identifier.startswith(text) or identifier.endswith(text) or short_id(identifier).startswith(text)


async def cancel_task(database: Path, text: str) -> TaskView:
    """Cancel a task; the worker that runs it stops its turn. Returns the task as it is afterwards.

    Raises:
        UnknownId: see `find_task`.
        UsageError: it has ended already.
    """
    view = find_task(database, text)
    async with _task_table(database) as tasks:
        if not await tasks.cancel(view.task.task_id):
            ended = find_task(database, view.task.task_id)
            raise UsageError(f"Task {short_id(view.task.task_id)} has already ended: {ended.status}.")
    return replace(view, task=replace(view.task, state="cancelled"), status="cancelled")


async def retry_task(database: Path, text: str) -> TaskView:
    """Queue a failed or cancelled task again, in the same thread.

    Raises:
        UnknownId: see `find_task`.
        UsageError: it neither failed nor was cancelled.
    """
    view = find_task(database, text)
    async with _task_table(database) as tasks:
        if not await tasks.reopen(view.task.task_id):
            raise UsageError(
                f"Only failed and cancelled tasks can be retried; {short_id(view.task.task_id)} is {view.status}."
            )
    return find_task(database, view.task.task_id)


def live_workers(database: Path) -> list[WorkerRow]:
    """The workers whose process is alive, as far as this host can tell.

    Raises:
        StorageError: the database cannot be read.
    """
    return [worker for worker in read_workers(database) if is_alive(worker.lease)]


def overview(database: Path, ended: int = 5) -> Overview:
    """Workers, tasks and busy threads of the whole database.

    Raises:
        StorageError: the database cannot be read.
    """
    views = list_tasks(database)
    is_over = ("done", "failed", "cancelled")
    open_views = [view for view in views if view.status not in is_over]
    over = [view for view in views if view.status in is_over]
    over.sort(key=lambda view: view.task.ended_at or "", reverse=True)
    try:
        with read_database(database) as reader:
            threads = [one for one in reader.threads() if one.holder is not None or one.status != "idle"]
    except NothingYet:
        threads = []
    return Overview(live_workers(database), open_views[::-1] + over[:ended], threads)


@asynccontextmanager
async def _task_table(database: Path) -> AsyncIterator[TaskTable]:
    async with await open_database(database) as opened:
        yield TaskTable(opened, SystemClock())
