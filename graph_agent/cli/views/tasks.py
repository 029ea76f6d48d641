"""The `tasks`, `worker`, `top` and `worktrees` views."""

import asyncio
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graph_agent.app.reader import database_stamp
from graph_agent.cli.exit_codes import ExitCode
from graph_agent.cli.views.format import format_time_and_age, without_echo
from graph_agent.cli.views.table import (
    colorize,
    format_columns,
    format_fields,
    format_time,
    print_json,
    print_json_line,
    print_lines,
    print_progress,
    print_result,
    print_text,
    supports_cursor,
)
from graph_agent.config.paths import own_command
from graph_agent.inspect import ThreadSummary
from graph_agent.wording import escape, format_age, format_count
from graph_agent.worker import tasks as queue
from graph_agent.worker.tasks import Overview, TaskRequest, TaskView

if TYPE_CHECKING:
    from graph_agent.worker.worktrees import Worktree

__all__ = [
    "add_task",
    "cancel_task",
    "list_tasks",
    "list_worktrees",
    "remove_worktree",
    "retry_task",
    "run_worker",
    "show_overview",
    "show_task",
]

_REFRESH_S = 0.5
_REREAD_S = 5.0
"""After this time `top` reads in any case: the death of a process does not change the file."""


def add_task(
    database: Path,
    prompt: str,
    workspace: str,
    flags: Mapping[str, Any],
    when: tuple[datetime | None, int],
    *,
    in_worktree: bool,
    as_json: bool,
    repository: tuple[str, str] = ("", ""),
) -> None:
    """Queue a task and print its ids.

    Args:
        when: the earliest time, and the seconds between runs.
        repository: the address of a git repository to check out, and the revision; both empty for none.
    """
    request = TaskRequest(prompt, Path(workspace).expanduser(), flags, in_worktree, *repository, *when)
    task = asyncio.run(queue.add_task(database, request))
    view = queue.find_task(database, task.task_id)
    if as_json:
        print_json(_task_json(view))
        return
    begins = f", not before {format_time(task.not_before)}" if view.status == "scheduled" else ""
    print_text(f"Queued task {queue.short_id(task.task_id)} (thread {queue.short_id(task.thread_id)}){begins}.")
    if not queue.overview(database).workers:
        print_text(f"No worker is running. Start one: {own_command()} worker")


def list_tasks(database: Path, *, as_json: bool) -> None:
    """Print every task, newest first."""
    views = queue.list_tasks(database)
    empty = f"No tasks yet. Add one with: {own_command()} tasks add 'PROMPT'"
    print_result({"tasks": list(map(_task_json, views))}, _task_table(views) if views else empty, as_json=as_json)


def _task_table(views: list[TaskView]) -> Iterator[str]:
    return format_columns(
        views,
        {
            "TASK": lambda view: queue.short_id(view.task.task_id),
            "STATUS": lambda view: view.status,
            "WHEN": _format_when,
            "THREAD": lambda view: queue.short_id(view.task.thread_id),
            "PROMPT": lambda view: " ".join(view.task.prompt.split()),
        },
        whole="graph-agent tasks show TASK",
    )


def _format_when(view: TaskView) -> str:
    if view.status == "scheduled":
        return f"at {format_time(view.task.not_before)}"
    return format_age(view.task.ended_at or view.task.started_at or view.task.added_at)


def _task_json(view: TaskView) -> dict[str, Any]:
    facts = asdict(view.task)
    facts.pop("options")
    return {
        "task_id": facts.pop("task_id"),
        "status": view.status,
        **facts,
        "flags": view.task.flags,
        "host": view.task.host,
        "repository": view.task.repository,
        "revision": view.task.revision,
        "pending_approvals": view.thread.pending_approvals if view.thread else 0,
        "interrupted_calls": view.thread.interrupted_calls if view.thread else 0,
    }


def show_task(database: Path, text: str, *, as_json: bool) -> None:
    """Print one task."""
    view = queue.find_task(database, text)
    if as_json:
        print_json(_task_json(view))
        return
    task = view.task
    fields = {
        "task": task.task_id,
        "status": view.status,
        "thread": task.thread_id,
        "workspace": view.thread.workspace if view.thread else task.workspace,
        **({"repository": task.repository} if task.repository else {}),
        **({"revision": task.revision} if task.revision else {}),
        **({"host": task.host} if task.host else {}),
        **({"branch": task.branch} if task.branch else {}),
        **({"every": f"{task.every} s"} if task.every else {}),
        "added": f"{format_time_and_age(task.added_at)} by {task.added_by}",
        **({"not before": format_time(task.not_before)} if view.status == "scheduled" else {}),
        **({"started": format_time_and_age(task.started_at)} if task.started_at else {}),
        **({"ended": format_time_and_age(task.ended_at)} if task.ended_at else {}),
        **({"worker": task.worker} if task.worker else {}),
        **({"error": task.error} if task.error else {}),
        "prompt": " ".join(task.prompt.split()),
    }
    print_lines(format_fields(fields))
    for line in _next_steps(view):
        print_text(line)


def _next_steps(view: TaskView) -> Iterator[str]:
    command, task = own_command(), view.task
    match view.status:
        case "waiting":
            yield f"Answer it: {command} approvals list --thread {task.thread_id}"
        case "interrupted":
            yield f"Decide what happens with the interrupted call: {command} recover {task.thread_id}"
        case "failed" | "cancelled":
            yield f"Try again: {command} tasks retry {queue.short_id(task.task_id)}"
        case "queued" | "paused" if task.host not in ("", socket.gethostname()):
            yield f"It waits for a worker on {task.host}, which has its workspace. Start one: {command} worker"
        case "queued" | "paused":
            yield f"A worker runs it: {command} worker"
        case "done":
            yield f"Read it: {command} threads show {task.thread_id}"
        case "scheduled" | "running":
            return


def cancel_task(database: Path, text: str, *, as_json: bool) -> None:
    """Cancel a task and print what is still open in its thread."""
    view = asyncio.run(queue.cancel_task(database, text))
    if as_json:
        print_json(_task_json(view))
        return
    print_text(f"Cancelled task {queue.short_id(view.task.task_id)}.")
    if view.thread is not None and view.thread.pending_approvals:
        count = format_count(view.thread.pending_approvals, "approval")
        print_text(f"Still open in its thread: {count}. List them: {own_command()} approvals list")


def retry_task(database: Path, text: str, *, as_json: bool) -> None:
    """Queue a task again."""
    view = asyncio.run(queue.retry_task(database, text))
    line = f"Queued task {queue.short_id(view.task.task_id)} again."
    print_result(_task_json(view), line, as_json=as_json)


def run_worker(database: Path, jobs: int, grace: float, host_labels: Sequence[str], *, until_idle: bool) -> int:
    """Run tasks until a signal, or until no task can run; returns the exit code."""
    from graph_agent.cli.log_file import log_to_file
    from graph_agent.cli.supervisor import catch_signals
    from graph_agent.worker.runner import Worker, WorkerOptions

    def report(line: str) -> None:
        sys.stdout.write(f"{time.strftime('%H:%M:%S')}  {escape(line)}\n")
        sys.stdout.flush()

    log_to_file()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    worker = Worker(database, WorkerOptions(jobs, grace, tuple(host_labels), until_idle), report)
    caught: list[ExitCode] = []

    async def run() -> None:
        def stop(code: ExitCode) -> None:
            caught.append(code)
            worker.stop()

        with catch_signals(stop, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            await worker.run()

    asyncio.run(run())
    return caught[0] if caught else ExitCode.DONE


def show_overview(database: Path, *, once: bool, as_json: bool) -> None:
    """Print workers, tasks and threads; unless `once`, after each change, until q, Ctrl-C or a closed stdout.

    Text that goes to a file or a pipe is printed once, because its reader waits for its end.
    """
    if once or not (as_json or sys.stdout.isatty()):
        found = queue.overview(database)
        print_result(_overview_json(found), _overview_lines(found), as_json=as_json)
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Ends with 130 and without a message.
    shown: Any = None
    with without_echo() as leaves_within:
        while True:
            stamp, until = database_stamp(database), time.monotonic() + _REREAD_S
            found = queue.overview(database)
            if found != shown:
                _print_overview(found, as_json=as_json)
                shown = found
            while database_stamp(database) == stamp and time.monotonic() < until:
                if leaves_within(_REFRESH_S):
                    return


def _print_overview(found: Overview, *, as_json: bool) -> None:
    if as_json:
        print_json_line(_overview_json(found))
    elif supports_cursor():
        lines = list(_overview_lines(found))[: shutil.get_terminal_size().lines - 3]
        lines += ["", colorize("q or Ctrl-C ends this view.", "idle")]
        # Line wrap is off meanwhile: the terminal itself cuts long lines.
        sys.stdout.write("\x1b[?7l\x1b[H\x1b[2J")
        print_lines(lines)
        sys.stdout.write("\x1b[?7h")
    else:
        print_lines([f"--- {time.strftime('%H:%M:%S')} ---", *_overview_lines(found), ""])
    sys.stdout.flush()


def _overview_lines(found: Overview) -> Iterator[str]:
    questions = sum(thread.pending_approvals + thread.interrupted_calls for thread in _own(found.threads))
    running = sum(view.status == "running" for view in found.tasks)
    counts = (
        format_count(len(found.workers), "worker"),
        f"{format_count(running, 'task')} running",
        f"{format_count(questions, 'question')} open",
    )
    yield colorize(", ".join(counts), "heading")
    if found.workers:
        yield ""
        yield from format_columns(
            found.workers,
            {
                "WORKER": lambda worker: worker.worker_id,
                "HOST": lambda worker: worker.lease.host,
                "PID": lambda worker: str(worker.lease.pid),
                "SLOTS": lambda worker: str(worker.slots),
                "SINCE": lambda worker: format_age(worker.lease.since),
            },
        )
    if found.tasks:
        yield ""
        yield from _task_table(found.tasks)
    of_tasks = {view.task.thread_id for view in found.tasks}
    if others := [thread for thread in _own(found.threads) if thread.thread_id not in of_tasks]:
        yield ""
        yield from format_columns(
            others,
            {
                "THREAD": lambda thread: queue.short_id(thread.thread_id),
                "STATUS": lambda thread: thread.status,
                "PENDING": lambda thread: str(thread.pending_approvals + thread.interrupted_calls),
                "HELD BY": lambda thread: f"{thread.holder.pid} on {thread.holder.host}" if thread.holder else "-",
                "TITLE": lambda thread: thread.title,
            },
        )
    if questions:
        yield ""
        yield f"Answer them: {own_command()} approvals list"


def _own(threads: list[ThreadSummary]) -> list[ThreadSummary]:
    """Without sub-agents, whose questions their parents count."""
    return [thread for thread in threads if thread.parent_call is None]


def _overview_json(found: Overview) -> dict[str, Any]:
    return {
        "workers": [
            {"worker_id": one.worker_id, "host": one.lease.host, "pid": one.lease.pid, "slots": one.slots,
             "since": one.lease.since}
            for one in found.workers
        ],
        "tasks": list(map(_task_json, found.tasks)),
        "threads": [
            {"thread_id": one.thread_id, "status": one.status, "pending_approvals": one.pending_approvals,
             "interrupted_calls": one.interrupted_calls, "held_by": one.holder.pid if one.holder else None}
            for one in _own(found.threads)
        ],
    }  # fmt: skip


def list_worktrees(workspace: str, *, as_json: bool) -> None:
    """Print the worktrees of threads in the repository of a folder."""
    from graph_agent.worker import worktrees

    found = worktrees.list_worktrees(Path(workspace).expanduser())
    values = [{**asdict(one), "path": str(one.path)} for one in found]
    columns: Mapping[str, Callable[[Worktree], str]] = {
        "BRANCH": lambda one: one.branch,
        "PATH": lambda one: str(one.path),
        "CHANGED": lambda one: format_count(one.changed_files, "file"),
        "COMMITS": lambda one: str(one.commits),
    }
    empty = f"No worktrees of threads here. Create one with: {own_command()} run 'PROMPT' --worktree"
    table = format_columns(found, columns, path_column="PATH", fixed_columns=4) if found else empty
    print_result({"worktrees": values}, table, as_json=as_json)


def remove_worktree(database: Path, workspace: str, name: str, *, as_json: bool) -> None:
    """Remove a worktree and print whether its branch is kept."""
    from graph_agent.config.trust import trust_file
    from graph_agent.worker import worktrees

    on_wait = worktrees.report_once(print_progress)
    folder = Path(workspace).expanduser()
    one, is_gone = worktrees.remove_worktree(folder, name, database, trust_file(os.environ), on_wait)
    own = format_count(one.commits, "commit")
    end = (
        f" and its branch {one.branch}."
        if is_gone
        else f". Its branch {one.branch} is kept: it has {own} of its own."
    )
    value = {"path": str(one.path), "branch": one.branch, "branch_removed": is_gone}
    print_result(value, f"Removed {one.path}{end}", as_json=as_json)
