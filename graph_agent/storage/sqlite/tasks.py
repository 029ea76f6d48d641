"""Tasks for workers: each is a thread whose first message is queued, and the row that says when and how it runs.

A task and its thread are created in one transaction, so no instant to die at leaves one without the other. Whether
a started task runs, waits for an answer or can be continued is the state of its thread, and is not stored twice.
"""

import json
import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import astuple, dataclass, field, fields, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, get_args
from uuid import uuid4

from graph_agent.errors import DamagedDatabase, NothingYet
from graph_agent.ports import Clock, TaskState, normalize_time
from graph_agent.ports.background import boot_id, process_started
from graph_agent.ports.read_store import Lease
from graph_agent.ports.stored_text import storable
from graph_agent.storage import Connection, open_read_connection
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.row_values import damaged_value, load_json
from graph_agent.storage.sqlite.threads import CREATE_THREAD, QUEUE_MESSAGE

__all__ = ["NewTask", "Task", "TaskTable", "WorkerRow", "read_tasks", "read_workers"]


@dataclass(frozen=True, slots=True)
class NewTask:
    """What to run, where and when."""

    prompt: str
    workspace: str
    mode: str
    """The permission mode that the thread keeps."""
    agent: str = ""
    """JSON object of the agent that it works as; empty for none."""
    flags: Mapping[str, Any] = field(default_factory=dict)
    """For `open_session`, in each run of it."""
    branch: str = ""
    """The branch, with a worktree of its own, that it works on; empty: in the workspace itself."""
    host: str = ""
    """The host that has the workspace, in a database that several hosts share; empty: whichever has the folder."""
    repository: str = ""
    """The address of a git repository for the worker to check out; until then `workspace` holds it as well."""
    revision: str = ""
    """Branch, tag or commit of the repository; empty: its default branch."""
    not_before: str = ""
    """ISO-8601 UTC; empty: now."""
    every: int = 0
    """Seconds after which it runs again, in a new thread; 0: once."""


@dataclass(frozen=True, slots=True)
class Task:
    """A row of the table."""

    task_id: str
    thread_id: str
    prompt: str
    workspace: str
    """The folder it was added for; with a branch, the repository."""
    options: str
    """JSON object with `mode`, `agent`, `flags`, `host`, `repository` and `revision`, see `NewTask`."""
    branch: str
    state: TaskState
    outcome: str
    """How its last turn ended, as `TurnStatus`; empty before the end."""
    error: str
    not_before: str
    every: int
    added_by: str
    added_at: str
    started_at: str | None
    ended_at: str | None
    worker: str | None
    """The worker that ran it last."""

    @property
    def flags(self) -> dict[str, Any]:
        """See `NewTask.flags`."""
        return dict(load_json(self.options, dict)["flags"])

    @property
    def host(self) -> str:
        """See `NewTask.host`."""
        return str(load_json(self.options, dict).get("host", ""))

    @property
    def repository(self) -> str:
        """See `NewTask.repository`."""
        return str(load_json(self.options, dict).get("repository", ""))

    @property
    def revision(self) -> str:
        """See `NewTask.revision`."""
        return str(load_json(self.options, dict).get("revision", ""))


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker process."""

    worker_id: str
    slots: int
    """How many tasks it runs at a time."""
    lease: Lease
    """Its process, as of a thread that is held."""


_COLUMNS = ", ".join(column.name for column in fields(Task))
_SELECT = f"SELECT {_COLUMNS} FROM tasks"  # noqa: S608 - names only
_INSERT = f"INSERT INTO tasks ({_COLUMNS}) VALUES ({', '.join('?' * len(fields(Task)))})"  # noqa: S608 - names only
_BEGIN = """
UPDATE tasks SET state = 'started', worker = :worker, started_at = coalesce(started_at, :now)
WHERE task_id = :task_id AND state IN ('queued', 'started')
"""
_END = """
UPDATE tasks SET state = :state, outcome = :outcome, error = :error, ended_at = :now
WHERE task_id = :task_id AND state IN ('queued', 'started') AND (:worker = '' OR worker = :worker)
"""
_REOPEN = """
UPDATE tasks SET state = 'queued', outcome = '', error = '', ended_at = NULL, not_before = :now
WHERE task_id = :task_id AND state IN ('failed', 'cancelled')
"""
_FORGET_THREAD = (
    "DELETE FROM inbox WHERE thread_id = ?",
    "DELETE FROM threads WHERE thread_id = ?",
)
_IS_UNTOUCHED = """
SELECT 1 FROM threads WHERE thread_id = ?1 AND checkpoint_id IS NULL
AND NOT EXISTS (SELECT 1 FROM leases WHERE thread_id = ?1)
"""
# A task whose thread waits for a person can be passed over: whatever its worker would read there, it could not run.
# Which process of this host is still alive, and what came of a call that was interrupted, is not decided here.
_DUE = f"""
{_SELECT} WHERE state IN ('queued', 'started') AND not_before <= :now
AND NOT EXISTS (
    SELECT 1 FROM leases h WHERE h.thread_id = tasks.thread_id AND h.ended_at IS NULL AND h.host <> :host)
AND NOT EXISTS (
    SELECT 1 FROM call_log l JOIN threads t ON t.thread_id = l.thread_id
    WHERE l.thread_id = tasks.thread_id AND t.next_nodes <> '[]' AND l.abandoned = 0
    AND (l.status = 'awaiting_approval'
        OR (l.status = 'interrupted' AND l.risk <> 'low' AND l.record NOT LIKE '%"resumable":%true%'))
    AND NOT EXISTS (
        SELECT 1 FROM decisions d WHERE d.thread_id = l.thread_id AND d.call_id = l.call_id
        AND d.superseded_at IS NULL
        AND d.question = CASE l.status WHEN 'interrupted' THEN 'recovery' ELSE 'approval' END)
    AND NOT EXISTS (
        SELECT 1 FROM journal j WHERE j.thread_id = l.thread_id AND j.call_id = l.call_id AND j.reverted = 0
        AND j.outcome IS NOT NULL))
ORDER BY not_before, rowid LIMIT :most OFFSET :skipped
"""  # noqa: S608 - names only
_STILL_OPEN = """
SELECT task_id FROM tasks WHERE task_id IN (SELECT value FROM json_each(?)) AND state IN ('queued', 'started')
"""
_HELD_ELSEWHERE = """
SELECT 1 FROM tasks JOIN leases h ON h.thread_id = tasks.thread_id
WHERE tasks.state IN ('queued', 'started') AND h.ended_at IS NULL AND h.host <> ? LIMIT 1
"""
_WORKERS = """
SELECT worker_id, slots, pid, process_started, boot_id, host, started_at, ended_at FROM workers
WHERE ended_at IS NULL ORDER BY started_at, worker_id
"""


class TaskTable:
    """The tasks and workers of one database. Every method is durable when it returns.

    On a server, a write that names the thread of its task keeps no other thread waiting.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(self, new: NewTask, by: str) -> Task:
        """Add a task with its thread and its queued message, in one step."""
        now = self._clock.now()
        task = Task(
            task_id=uuid4().hex,
            thread_id=uuid4().hex,
            prompt=storable(new.prompt),
            workspace=storable(new.workspace),
            options=json.dumps(
                {
                    "mode": new.mode,
                    "agent": new.agent,
                    "flags": dict(new.flags),
                    "host": storable(new.host),
                    **({"repository": new.repository, "revision": new.revision} if new.repository else {}),
                }
            ),
            branch=storable(new.branch),
            state="queued",
            outcome="",
            error="",
            not_before=normalize_time(new.not_before) if new.not_before else now,
            every=new.every,
            added_by=storable(by),
            added_at=now,
            started_at=None,
            ended_at=None,
            worker=None,
        )
        await self._database.write(lambda connection: _insert(connection, task))
        return task

    async def set_host(self, task: Task) -> None:
        """Note that the workspace of the task is on this host."""
        options = json.dumps({**load_json(task.options, dict), "host": _host()})
        values = (options, task.task_id)
        statement = "UPDATE tasks SET options = ? WHERE task_id = ?"
        await self._database.write(
            lambda connection: connection.execute(statement, values), thread_id=task.thread_id
        )

    async def begin(self, task_id: str, worker: str, thread_id: str = "") -> Task | None:
        """Note that a worker starts or continues the task; None if it is no longer open.

        With the first start of a repeated task the next one is added, for the first time that has not yet passed.
        """
        now = self._clock.now()

        def begin(connection: Connection) -> Task | None:
            task = _task_of(connection, task_id)
            values = {"task_id": task_id, "worker": worker, "now": now}
            if task is None or connection.execute(_BEGIN, values).rowcount != 1:
                return None
            if task.every and task.started_at is None and (following := _following(task, now)):
                _insert(connection, following)
            return _task_of(connection, task_id)

        return await self._database.write(begin, thread_id=thread_id)

    async def end(
        self,
        task_id: str,
        state: Literal["done", "failed", "cancelled"],
        outcome: str = "",
        error: str = "",
        *,
        worker: str = "",
        thread_id: str = "",
    ) -> bool:
        """Note how the task ended; False if it has ended already, or another worker has begun it."""
        values = {
            "task_id": task_id,
            "state": state,
            "outcome": outcome,
            "error": storable(error),
            "worker": worker,
        }
        values["now"] = self._clock.now()
        return await self._database.write(
            lambda connection: connection.execute(_END, values).rowcount == 1, thread_id=thread_id
        )

    async def cancel(self, task_id: str) -> bool:
        """Cancel an open task, False if it has ended; a thread in which nothing has happened yet is deleted."""
        values = {"task_id": task_id, "state": "cancelled", "outcome": "", "error": "", "worker": ""}
        values["now"] = self._clock.now()

        def cancel(connection: Connection) -> bool:
            task = _task_of(connection, task_id)
            if task is None or connection.execute(_END, values).rowcount != 1:
                return False
            if connection.execute(_IS_UNTOUCHED, (task.thread_id,)).fetchone():
                for statement in _FORGET_THREAD:
                    connection.execute(statement, (task.thread_id,))
            return True

        return await self._database.write(cancel)

    async def reopen(self, task_id: str) -> bool:
        """Queue a failed or cancelled task again, at once; False if it is in another state."""
        values = {"task_id": task_id, "now": self._clock.now()}

        def reopen(connection: Connection) -> bool:
            task = _task_of(connection, task_id)
            if task is None or connection.execute(_REOPEN, values).rowcount != 1:
                return False
            if not connection.execute("SELECT 1 FROM threads WHERE thread_id = ?", (task.thread_id,)).fetchone():
                _insert_thread(connection, task)
            return True

        return await self._database.write(reopen)

    async def due(self, most: int, skipped: int = 0) -> list[Task]:
        """Open tasks whose time has come, in order, at most this many after the first `skipped` ones.

        Tasks whose thread is held on another host or waits for a person are left out by the statement itself, so
        that it returns few rows however many of them there are.
        """
        values = {"now": self._clock.now(), "host": _host(), "most": most, "skipped": skipped}
        return list(map(_task, await self._database.rows(_DUE, values)))

    async def is_any_held_elsewhere(self) -> bool:
        """Whether the thread of an open task is held on another host, whose lease may end."""
        return bool(await self._database.rows(_HELD_ELSEWHERE, (_host(),)))

    async def ended(self, task_ids: Sequence[str]) -> set[str]:
        """Which of these tasks are no longer open."""
        rows = await self._database.rows(_STILL_OPEN, (json.dumps(list(task_ids)),))
        return {*task_ids} - {task_id for (task_id,) in rows}

    async def register_worker(self, slots: int) -> str:
        """Add this process as a worker; returns its id. Workers that ended are forgotten."""
        worker_id, pid = uuid4().hex[:8], os.getpid()
        row = (worker_id, _host(), pid, process_started(pid) or "", boot_id(), slots, self._clock.now())

        def register(connection: Connection) -> None:
            connection.execute("DELETE FROM workers WHERE ended_at IS NOT NULL")
            connection.execute(
                "INSERT INTO workers (worker_id, host, pid, process_started, boot_id, slots, started_at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                row,
            )

        await self._database.write(register)
        return worker_id

    async def end_worker(self, worker_id: str) -> None:
        """Note that the worker has ended."""
        values = (self._clock.now(), worker_id)
        statement = "UPDATE workers SET ended_at = ? WHERE worker_id = ?"
        await self._database.write(lambda connection: connection.execute(statement, values))


def read_tasks(database: Path) -> list[Task]:
    """Every task, newest first; none where there is no database, or one of an earlier version.

    Raises:
        StorageError: the database cannot be read.
    """
    return list(map(_task, _read(database, "tasks", f"{_SELECT} ORDER BY rowid DESC")))


def read_workers(database: Path) -> list[WorkerRow]:
    """The workers that have not ended, by their start; also those whose process died without a word."""
    found = _read(database, "workers", _WORKERS)
    return [
        WorkerRow(worker_id, slots, Lease(pid, process, boot, host, since, ended_at))
        for worker_id, slots, pid, process, boot, host, since, ended_at in found
    ]


def _read(path: Path, table: str, query: str) -> list[tuple[Any, ...]]:
    try:
        connection = open_read_connection(path)
    except NothingYet:
        return []
    with closing(connection):
        is_there = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?"
        return connection.rows(query) if connection.rows(is_there, (table,)) else []


def _host() -> str:
    return storable(socket.gethostname())


def _insert(connection: Connection, task: Task) -> None:
    connection.execute(_INSERT, astuple(task))
    _insert_thread(connection, task)


def _insert_thread(connection: Connection, task: Task) -> None:
    options = load_json(task.options, dict)
    mode, agent = str(options.get("mode", "default")), str(options.get("agent", ""))
    row = (task.thread_id, task.workspace, "", mode, agent, task.added_at, task.added_at)
    connection.execute(CREATE_THREAD, row)
    message = {"thread_id": task.thread_id, "text": task.prompt, "by": task.added_by, "at": task.added_at}
    connection.execute(QUEUE_MESSAGE, {**message, "urgent": 0})


def _following(task: Task, now: str) -> Task | None:
    """The next run of a repeated task; None if no calendar reaches that far."""
    due = datetime.fromisoformat(task.not_before)
    try:
        step = timedelta(seconds=task.every)
        missed = max((datetime.fromisoformat(now) - due) // step, 0)
        following = due + step * (missed + 1)
    except OverflowError:
        return None
    return replace(
        task,
        task_id=uuid4().hex,
        thread_id=uuid4().hex,
        not_before=normalize_time(following.isoformat()),
        added_at=now,
        started_at=None,
        worker=None,
        state="queued",
    )


def _task_of(connection: Connection, task_id: str) -> Task | None:
    row = connection.execute(f"{_SELECT} WHERE task_id = ?", (task_id,)).fetchone()
    return _task(row) if row else None


def _task(row: Sequence[Any]) -> Task:
    """A row of the table.

    Raises:
        DamagedDatabase: a column holds what no version wrote.
    """
    task = Task(*row)
    try:
        is_sound = isinstance(load_json(task.options, dict)["flags"], dict) and bool(
            normalize_time(task.not_before)
        )
    except (KeyError, TypeError, ValueError, DamagedDatabase):
        is_sound = False
    is_text = all(isinstance(one, str) for one in row[:10])
    if not (is_sound and is_text) or task.state not in get_args(TaskState) or not isinstance(task.every, int):
        raise damaged_value(f"Task {task.task_id!r:.40}")
    return task
