"""The worker: runs the tasks that are due, several at a time, until it is stopped.

It has no state of its own. Whether a task can run is read from its thread, and the thread lock keeps two processes
from running one; so a worker may die at any instant, and the next one continues. A task that waits for a person
occupies no slot: its thread is closed, and opened again once every question has its answer.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from graph_agent.app.opening import open_session
from graph_agent.app.reader import read_database
from graph_agent.app.threads import run_until_question
from graph_agent.config.paths import ServerPath, data_dir, folder_at
from graph_agent.config.trust import trust_file
from graph_agent.errors import AgentError, DamagedDatabase, NewerSchema, StorageError, ThreadHeld, UsageError
from graph_agent.ports.stored_text import storable
from graph_agent.storage import listen_for_work
from graph_agent.storage.sqlite.tasks import Task, TaskTable
from graph_agent.storage.sqlite.threads import Store, open_store
from graph_agent.wording import format_count
from graph_agent.worker.tasks import is_answered, short_id
from graph_agent.worker.worktrees import OnWait, check_out, create_worktree, report_once

if TYPE_CHECKING:
    from graph_agent.inspect import ThreadSummary
    from graph_agent.session.session import Session
    from graph_agent.session.turn_result import TurnResult
    from graph_agent.storage.postgres.reader import WorkNotices

__all__ = ["Worker", "WorkerOptions"]

_POLL_S = 0.5
"""How often the worker looks into a file for new tasks, answers and cancellations."""
_PAGE = 32
"""How many tasks are read at a time."""
_SHOWN_CHARS = 60
_REREAD_S = 5.0
"""After this time it looks at a server in any case: a notice may be lost."""
_SHORT_REREAD_S = 2.0
"""The same while others hold tasks: a server sends no notice when a lease ends."""
_PAUSE_S = 3.0
"""How long it waits before it tries again to open a task, or to reach a server."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """The settings of a worker process."""

    slots: int = 1
    """Tasks at a time."""
    grace_seconds: float = 30.0
    """How long turns may take to end after the first request to stop; then they are interrupted."""
    hosts: tuple[str, ...] = ()
    """Names of other hosts or containers whose workspaces are here too, because they share the disk."""
    until_idle: bool = False
    """End as soon as no task can run, even if some wait for an answer or for their time."""


@dataclass(slots=True)
class _Running:
    work: "asyncio.Task[None]"
    session: "Session | None" = None
    stopping: "asyncio.Task[TurnResult] | None" = None
    """Stops its turn, because the task was cancelled, or has ended elsewhere."""


class Worker:
    """One worker process."""

    def __init__(self, database: Path, options: WorkerOptions, report: Callable[[str], None]) -> None:
        self._database = database
        self._options = options
        self._report = report
        self._running: dict[str, _Running] = {}
        self._retry_at: dict[str, float] = {}
        """The earliest time to try a task again, by the clock of the event loop."""
        self._notices: WorkNotices | None = None
        self._needs_short_wait = False
        """Whether a task may become ready without a notice of the server."""
        self._noticed = asyncio.Event()
        self._stopping = asyncio.Event()
        self._is_ending = False
        self._failure: StorageError | None = None

    def stop(self) -> None:
        """Start no more tasks and let running turns end within the grace period; a second call interrupts them."""
        if self._stopping.is_set():
            self._is_ending = True
        self._stopping.set()

    async def run(self) -> None:
        """Work until stopped, or with `until_idle` until nothing can run.

        Raises:
            StorageError: the database cannot be used.
        """
        store = await open_store(self._database)
        tasks = TaskTable(store.database, store.clock)
        worker_id = await tasks.register_worker(self._options.slots)
        most = format_count(self._options.slots, "task")
        self._report(f"Worker {worker_id} started; it runs up to {most} at a time. Stop it with Ctrl-C or SIGTERM.")
        try:
            while not self._stopping.is_set():
                started = await self._look(store, tasks, worker_id)
                if self._options.until_idle and not started and not self._running:
                    break
                await self._wait()
            await self._drain()
            await tasks.end_worker(worker_id)
            if self._failure is not None:
                raise self._failure
        finally:
            self._stop_listening()
            for one in self._running.values():
                one.work.cancel()
            await store.database.close()

    async def _look(self, store: Store, tasks: TaskTable, worker_id: str) -> bool:
        """Do `_start_due`. If a server cannot be reached, wait a little; True then.

        Raises:
            StorageError: the database is a file, or waiting does not help.
        """
        self._noticed.clear()
        try:
            await self._listen()
            return await self._start_due(store, tasks, worker_id)
        except (DamagedDatabase, NewerSchema):
            raise
        except StorageError as failure:
            if not isinstance(self._database, ServerPath):
                raise
            self._report(f"Waiting for the server: {failure}")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), _PAUSE_S)
            return True

    async def _listen(self) -> None:
        """Listen for notices of a server; begun before tasks are read, so that none is missed.

        Raises:
            StorageError: it cannot be reached.
        """
        if self._notices is None and isinstance(self._database, ServerPath):
            self._notices = await asyncio.to_thread(listen_for_work, self._database)
            asyncio.get_running_loop().add_reader(self._notices.fileno(), self._notice)

    def _notice(self) -> None:
        if self._notices is not None and not self._notices.take():
            self._stop_listening()
        self._noticed.set()

    def _stop_listening(self) -> None:
        if self._notices is not None:
            asyncio.get_running_loop().remove_reader(self._notices.fileno())
            self._notices.close()
            self._notices = None

    async def _wait(self) -> None:
        """Until a running task ends, the worker is stopped, or it is time to look again."""
        seconds = _POLL_S
        if self._notices is not None:
            seconds = _SHORT_REREAD_S if self._needs_short_wait else _REREAD_S
        events = [asyncio.ensure_future(one.wait()) for one in (self._stopping, self._noticed)]
        waited = {*events, *(one.work for one in self._running.values())}
        await asyncio.wait(waited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for event in events:
            event.cancel()
        self._remove_finished()

    def _remove_finished(self) -> None:
        """Forget the tasks that this worker no longer runs.

        Raises:
            Exception: a bug that one of them met. The task can still be continued.
        """
        for task_id in [task_id for task_id, one in self._running.items() if one.work.done()]:
            self._running.pop(task_id).work.result()

    async def _start_due(self, store: Store, tasks: TaskTable, worker_id: str) -> bool:
        """Start the tasks that can run and stop those that were cancelled. Returns whether any started or ended."""
        await self._stop_cancelled(tasks)
        has_changed = self._needs_short_wait = False
        for page_number in count():
            if not self._has_free_slot():
                return has_changed
            page = await tasks.due(_PAGE, page_number * _PAGE)
            due = [task for task in page if self._is_for_this_worker(task)]
            # On a thread: while a server is slow, the event loop has to stop commands whose lease ends.
            threads = await asyncio.to_thread(self._read_threads, due) if due else {}
            for task in due:
                has_changed |= await self._start_or_end(task, threads.get(task.thread_id), store, tasks, worker_id)
            if len(page) < _PAGE:
                break
        if isinstance(self._database, ServerPath) and not self._needs_short_wait:
            self._needs_short_wait = await tasks.is_any_held_elsewhere()
        return has_changed

    async def _start_or_end(
        self, task: Task, thread: "ThreadSummary | None", store: Store, tasks: TaskTable, worker_id: str
    ) -> bool:
        """Start the task if it can run now, or note that it has ended; False if neither."""
        if task.state == "started" and await self._has_ended(task, thread, tasks):
            return True
        if not self._has_free_slot():
            return False
        if not _can_run(thread) or not (begun := await tasks.begin(task.task_id, worker_id, task.thread_id)):
            self._needs_short_wait = True
            return False
        is_retry = task.state == "queued" and thread is not None and thread.checkpoint_id is not None
        work = asyncio.create_task(self._run_task(begun, store, tasks, is_retry=is_retry))
        self._running[task.task_id] = _Running(work)
        return True

    async def _stop_cancelled(self, tasks: TaskTable) -> None:
        running = {
            task_id: one
            for task_id, one in self._running.items()
            if one.session is not None and one.stopping is None
        }
        for task_id in await tasks.ended(list(running)) if running else ():
            one = running[task_id]
            if one.session is not None:  # It may have been closed meanwhile.
                one.stopping = asyncio.create_task(one.session.stop())

    def _has_free_slot(self) -> bool:
        return len(self._running) < self._options.slots

    def _is_for_this_worker(self, task: Task) -> bool:
        """Whether this worker may start it now: it does not run yet, is not postponed, and has its folder here."""
        now = asyncio.get_running_loop().time()
        is_postponed = self._retry_at.get(task.task_id, now) > now
        return task.task_id not in self._running and not is_postponed and self._has_workspace(task)

    def _has_workspace(self, task: Task) -> bool:
        """Whether the task may run on this host: a folder of the same name on another one is not its workspace."""
        if not isinstance(self._database, ServerPath):
            return True
        if not task.host:
            return bool(task.repository) or folder_at(task.workspace) is not None
        return task.host in (storable(socket.gethostname()), *self._options.hosts)

    def _read_threads(self, due: Sequence[Task]) -> dict[str, "ThreadSummary"]:
        with read_database(self._database) as reader:
            return {thread.thread_id: thread for thread in reader.family(*(task.thread_id for task in due))}

    async def _has_ended(self, task: Task, thread: "ThreadSummary | None", tasks: TaskTable) -> bool:
        """Whether its thread has finished elsewhere, or before an earlier worker could record it."""
        if thread is None:
            return await self._record_end(task, tasks, "failed", "", "Its thread was deleted.")
        if thread.status != "idle" or thread.queued_messages or thread.holder is not None or not thread.outcome:
            return False
        if thread.outcome == "done":
            return await self._record_end(task, tasks, "done", "done")
        return await self._record_end(task, tasks, "failed", thread.outcome, _explain(thread.outcome))

    async def _run_task(self, task: Task, store: Store, tasks: TaskTable, *, is_retry: bool) -> None:
        """Run the task until it ends or waits. A failure ends it, unless its thread or the database was lost: then
        it stays open.
        """
        short = short_id(task.task_id)
        self._report(f"{short}  started in thread {short_id(task.thread_id)}: {_first_line(task.prompt)}")
        try:
            try:
                await self._continue_task(task, store, tasks, is_retry=is_retry)
            except AgentError as failure:
                if isinstance(failure, ThreadHeld | StorageError) and not isinstance(failure, DamagedDatabase):
                    raise
                await self._record_end(task, tasks, "failed", "failed", str(failure))
        except (ThreadHeld, StorageError) as failure:
            self._postpone(task, str(failure))
            if isinstance(failure, NewerSchema):
                self._failure = failure
                self.stop()

    def _postpone(self, task: Task, reason: str) -> None:
        self._retry_at[task.task_id] = asyncio.get_running_loop().time() + _PAUSE_S
        self._report(f"{short_id(task.task_id)}  cannot be continued here: {reason}")

    async def _continue_task(self, task: Task, store: Store, tasks: TaskTable, *, is_retry: bool) -> None:
        workspace = await self._workspace(task, store, tasks)
        flags = {**task.flags, "db": self._database, "awaits_servers": True}
        session = await open_session(workspace=workspace, thread_id=task.thread_id, flags=flags)
        one = self._running[task.task_id]
        one.session = session
        result: TurnResult | None = None
        try:
            if self._is_ending:
                return
            with suppress(asyncio.CancelledError):  # A turn that is interrupted may end by being cancelled.
                result = await run_until_question(session, lambda: self._is_ending, is_retry=is_retry)
        finally:
            one.session = None
            if one.stopping is not None:
                # It uses the session until its end. It fails where the turn did, as when the lease is lost.
                await asyncio.gather(one.stopping, return_exceptions=True)
            await session.close()
        if result is not None:
            await self._record_result(task, result, tasks)

    async def _workspace(self, task: Task, store: Store, tasks: TaskTable) -> Path:
        """The folder that the thread works in; a worktree is created before its first turn.

        Raises:
            AgentError: there is no such folder, git refuses, or the worktree cannot be written.
        """
        row = await store.threads.get(task.thread_id)
        folder = Path(row.workspace if row is not None else task.workspace)
        if task.branch and (row is None or row.workspace == task.workspace):
            try:
                folder = await asyncio.to_thread(_make_worktree, task, folder, self._on_wait(task))
            except (OSError, UnicodeError) as error:
                raise UsageError(f"The worktree of the task cannot be made: {error}") from error
            if task.repository:
                await tasks.set_host(task)
            await store.threads.set_workspace(task.thread_id, str(folder))
        if folder_at(folder) is None:
            raise AgentError(f"The folder {str(folder)!r} of the task does not exist on this machine.")
        return folder

    def _on_wait(self, task: Task) -> OnWait:
        """Reports what a checkout waits for; raises StorageError once the worker is stopped."""
        report = report_once(lambda reason: self._report(f"{short_id(task.task_id)}  {reason}"))

        def wait(reason: str) -> None:
            if self._stopping.is_set():
                raise StorageError("the worker is being stopped")
            report(reason)

        return wait

    async def _record_result(self, task: Task, result: "TurnResult", tasks: TaskTable) -> None:
        """Record how a run of the task ended, or report what it waits for."""
        short = short_id(task.task_id)
        if result.questions:
            calls = ", ".join(item.question.call_id for item in result.questions)
            self._report(f"{short}  waits for an answer to {calls}")
        elif result.status in ("awaiting_approval", "interrupted"):
            self._report(f"{short}  has its answers; a worker continues it")
        elif result.status == "resumable":
            self._report(f"{short}  was interrupted; the next worker continues it")
        elif result.status == "failed":  # Another process has the thread now.
            self._postpone(task, result.error or "this process lost its thread")
        elif result.status == "done" and not result.unmet:
            await self._record_end(task, tasks, "done", "done")
        else:
            error = result.error or result.unmet or _explain(result.status)
            await self._record_end(task, tasks, "failed", result.status, error)

    async def _record_end(
        self, task: Task, tasks: TaskTable, state: Literal["done", "failed"], outcome: str, error: str = ""
    ) -> bool:
        # If another worker has begun the task meanwhile, only that one knows how it ends.
        ended = await tasks.end(
            task.task_id, state, outcome, error, worker=task.worker or "", thread_id=task.thread_id
        )
        if ended:
            place = f"; branch {task.branch}, in the worktree of its thread" if task.branch else ""
            self._report(f"{short_id(task.task_id)}  {state}{f': {error}' if error else place}")
        else:
            self._report(f"{short_id(task.task_id)}  was cancelled, or another worker continues it")
        return ended

    async def _drain(self) -> None:
        """Let running turns end within the grace period, then interrupt them."""
        if not self._running:
            return
        loop = asyncio.get_running_loop()
        until = loop.time() + self._options.grace_seconds
        running = format_count(len(self._running), "running task")
        self._report(f"Stopping; waits at most {self._options.grace_seconds:g} s for {running}.")
        while self._running and not self._is_ending and loop.time() < until:
            await asyncio.wait(
                [one.work for one in self._running.values()], timeout=0.1, return_when=asyncio.FIRST_COMPLETED
            )
            self._remove_finished()
        self._is_ending = True
        await asyncio.gather(
            *(one.session.shut_down() for one in self._running.values() if one.session is not None)
        )
        if self._running:
            await asyncio.wait([one.work for one in self._running.values()], timeout=10)
        self._remove_finished()


def _make_worktree(task: Task, folder: Path, on_wait: OnWait) -> Path:
    """The worktree of the task: of the repository that it names, or else of the one that the folder is in."""
    if task.repository:
        return check_out(
            task.repository, task.revision, task.branch, data_dir(os.environ) / "repositories", on_wait
        )
    return create_worktree(folder, task.branch, trust_file(os.environ), on_wait)


def _can_run(thread: "ThreadSummary | None") -> bool:
    """Whether the thread is free, and no answer or recovery decision is missing.

    This process does not run the task: a lease of its own is one that it could not end, because the disk was full.
    """
    if thread is None:
        return False
    if thread.holder is not None:
        return (thread.holder.host, thread.holder.pid) == (socket.gethostname(), os.getpid())
    return thread.status in ("idle", "resumable") or is_answered(thread)


def _first_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARS else f"{line[: _SHOWN_CHARS - 1]}…"


def _explain(outcome: str) -> str:
    """Why a turn did not finish, as `tasks show` prints it."""
    match outcome:
        case "limit":
            return "It reached a limit of steps, tokens or cost. Retry the task to continue it."
        case "stopped":
            return "Its turn was stopped."
        case _:
            return f"Its turn ended with the status {outcome!r}."
