"""The `tasks`, `worker`, `top` and `worktrees` commands."""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from typer import Argument, Option

from graph_agent.cli.arguments import read_stdin
from graph_agent.cli.command_types import PlainCommand, command_group
from graph_agent.cli.commands.session import (
    AddDir,
    Agent,
    Bypass,
    Effort,
    MaxCost,
    MaxSteps,
    MaxTokens,
    Mode,
    Model,
)
from graph_agent.cli.options import AsJson, Database, resolve_database

__all__ = ["tasks_app", "top_command", "worker_command", "worktrees_app"]

tasks_app = command_group("Queue tasks for workers; list, cancel and retry them.")
worktrees_app = command_group("List and remove the git worktrees of threads.")

_Task = Annotated[
    str, Argument(metavar="TASK", help="Task id, or four or more characters of its beginning or end.")
]
_InRepository = Annotated[
    str | None, Option("--workspace", metavar="DIR", help="A folder of the repository. Default: this folder.")
]
_Name = Annotated[
    str, Argument(metavar="NAME", help="Name, branch or path of the worktree. The beginning of the name is enough.")
]


_Every = Annotated[
    str | None,
    Option("--every", metavar="SPAN", help="Repeat at this interval, each time in a new thread: 30m, 12h, 1d."),
]
_Repository = Annotated[
    str | None,
    Option("--repo", metavar="URL", help="Work in a new branch of this git repository; the worker fetches it."),
]
_Revision = Annotated[
    str | None,
    Option("--revision", metavar="REV", help="Branch, tag or commit of --repo. Default: its default branch."),
]
_LONGEST_INTERVAL_S = 520 * 7 * 24 * 3600


@tasks_app.command("add", cls=PlainCommand)
def add_command(
    prompt: Annotated[str, Argument(help="The task; - reads it from stdin.")],
    *,
    at: Annotated[
        str | None,
        Option("--at", metavar="TIME", help="Earliest start: 18:30, '2027-01-31 07:00', or 90m from now."),
    ] = None,
    every: _Every = None,
    worktree: Annotated[bool, Option("--worktree", help="Work in a new git worktree and branch.")] = False,
    repo: _Repository = None,
    revision: _Revision = None,
    agent: Agent = None,
    model: Model = None,
    effort: Effort = None,
    mode: Mode = None,
    skip_permissions: Bypass = False,
    max_steps: MaxSteps = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    workspace: Annotated[str | None, Option("--workspace", metavar="DIR", help="Working directory.")] = None,
    add_dir: AddDir = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Queue a task for `graph-agent worker`. Answer its questions with `graph-agent approvals`."""
    from graph_agent.cli.session_target import absolute_paths
    from graph_agent.cli.views.tasks import add_task

    flags = {
        "agent": agent,
        "model": model,
        "effort": effort,
        "mode": "bypassPermissions" if skip_permissions else mode,
        "max_steps": max_steps,
        "max_tokens": max_tokens,
        "max_cost": max_cost,
        "add_dirs": absolute_paths(add_dir),
    }
    text = read_stdin() if prompt == "-" else prompt
    when = (None if at is None else _parse_time(at), 0 if every is None else _parse_interval(every))
    add_task(
        resolve_database(db),
        text,
        workspace or ".",
        flags,
        when,
        in_worktree=worktree,
        as_json=as_json,
        repository=_repository(repo, revision, is_elsewhere=worktree or workspace is not None),
    )


@tasks_app.command("list", cls=PlainCommand)
def list_command(db: Database = None, as_json: AsJson = False) -> None:
    """List all tasks and their status, newest first."""
    from graph_agent.cli.views.tasks import list_tasks

    list_tasks(resolve_database(db), as_json=as_json)


@tasks_app.command("show", cls=PlainCommand)
def show_command(task: _Task, db: Database = None, as_json: AsJson = False) -> None:
    """Show a task: its prompt, its status, and what to do next."""
    from graph_agent.cli.views.tasks import show_task

    show_task(resolve_database(db), task, as_json=as_json)


@tasks_app.command("cancel", cls=PlainCommand)
def cancel_command(task: _Task, db: Database = None, as_json: AsJson = False) -> None:
    """Cancel a task. If it is running, its turn is stopped; its thread is kept."""
    from graph_agent.cli.views.tasks import cancel_task

    cancel_task(resolve_database(db), task, as_json=as_json)


@tasks_app.command("retry", cls=PlainCommand)
def retry_command(task: _Task, db: Database = None, as_json: AsJson = False) -> None:
    """Queue a failed or cancelled task again, in the same thread."""
    from graph_agent.cli.views.tasks import retry_task

    retry_task(resolve_database(db), task, as_json=as_json)


def worker_command(
    *,
    jobs: Annotated[int, Option("-j", "--jobs", min=1, max=1000, metavar="N", help="Tasks to run at a time.")] = 1,
    once: Annotated[bool, Option("--once", help="Exit when no task can run.")] = False,
    grace: Annotated[
        str,
        Option("--grace", metavar="SPAN", help="How long running turns may take to end after SIGTERM or Ctrl-C."),
    ] = "30s",
    host_label: Annotated[
        list[str] | None,
        Option(
            "--host-label",
            metavar="NAME",
            help="Also run tasks added on host NAME, whose folders are here too.",
        ),
    ] = None,
    db: Database = None,
) -> None:
    """Run queued tasks. While one waits for your answer, the worker runs others."""
    from graph_agent.cli.views.format import parse_duration
    from graph_agent.cli.views.tasks import run_worker

    for label in host_label or ():
        if not re.fullmatch(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?", label):
            raise typer.BadParameter(
                f"--host-label {label[:80]!r} is not a host name: up to 253 letters, digits, '.', '-' and '_'."
            )
    seconds = parse_duration(grace, "--grace")
    raise typer.Exit(run_worker(resolve_database(db), jobs, seconds, host_label or (), until_idle=once))


def top_command(
    *,
    once: Annotated[bool, Option("--once", help="Print once and exit.")] = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Watch workers, tasks, and the threads that run or wait for you. q or Ctrl-C exits."""
    from graph_agent.cli.views.tasks import show_overview

    show_overview(resolve_database(db), once=once, as_json=as_json)


@worktrees_app.command("list", cls=PlainCommand)
def list_worktrees_command(workspace: _InRepository = None, as_json: AsJson = False) -> None:
    """List the worktrees of threads in this repository."""
    from graph_agent.cli.views.tasks import list_worktrees

    list_worktrees(workspace or ".", as_json=as_json)


@worktrees_app.command("remove", cls=PlainCommand)
def remove_worktree_command(
    name: _Name, workspace: _InRepository = None, db: Database = None, as_json: AsJson = False
) -> None:
    """Remove a worktree without uncommitted changes. Its branch is kept if it has commits of its own."""
    from graph_agent.cli.views.tasks import remove_worktree

    remove_worktree(resolve_database(db), workspace or ".", name, as_json=as_json)


def _repository(url: str | None, revision: str | None, *, is_elsewhere: bool) -> tuple[str, str]:
    """The address of the repository and the revision, both empty without `--repo`.

    Raises:
        BadParameter: the options contradict each other.
    """
    if revision is not None and url is None:
        raise typer.BadParameter("--revision needs --repo URL.")
    if url is not None and is_elsewhere:
        raise typer.BadParameter("--repo has a worktree of its own. Leave out --workspace and --worktree.")
    return url or "", revision or ""


def _parse_time(text: str) -> datetime:
    """The time of `--at`, in the local time zone unless it names another.

    Raises:
        BadParameter: the text is not a time.
    """
    from graph_agent.cli.views.format import parse_duration
    from graph_agent.errors import UsageError

    now = datetime.now().astimezone()
    try:
        return now + timedelta(seconds=parse_duration(text, "--at"))
    except UsageError:
        pass
    except OverflowError:
        raise typer.BadParameter(f"--at {text!r} is further away than the year 9999.") from None
    try:
        clock = datetime.strptime(text.strip(), "%H:%M").time()  # noqa: DTZ007 - of today, in the local zone
    except ValueError:
        pass
    else:
        today = now.replace(hour=clock.hour, minute=clock.minute, second=0, microsecond=0)
        return today if today >= now else today + timedelta(days=1)
    try:
        return datetime.fromisoformat(text.strip()).astimezone(UTC).astimezone()
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"--at {text!r} is not a time. Examples: 18:30, 2027-01-31, '2027-01-31 07:00', 90m (from now)."
        ) from None


def _parse_interval(text: str) -> int:
    """The seconds of `--every`.

    Raises:
        BadParameter: it is shorter than a minute or longer than ten years.
    """
    from graph_agent.cli.views.format import parse_duration

    seconds = int(parse_duration(text, "--every"))
    if not 60 <= seconds <= _LONGEST_INTERVAL_S:
        raise typer.BadParameter(f"--every {text!r} is not between 1m and 520w.")
    return seconds
