"""The `tasks`, `worker`, `top` and `worktrees` commands: work that runs without a person in front of it."""

from datetime import datetime, timedelta
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

tasks_app = command_group("Queue tasks for workers, and see, cancel or retry them.")
worktrees_app = command_group("List and remove the git worktrees that were made for threads.")

_Task = Annotated[str, Argument(metavar="TASK", help="Task id, or its first four or more characters.")]
_InRepository = Annotated[
    str | None, Option("--workspace", metavar="DIR", help="A folder of the repository. Default: this folder.")
]
_Name = Annotated[str, Argument(metavar="NAME", help="Name, branch or path of the worktree.")]


@tasks_app.command("add", cls=PlainCommand)
def add_command(
    prompt: Annotated[str, Argument(help="The task; - reads it from stdin.")],
    *,
    at: Annotated[
        str | None,
        Option("--at", metavar="TIME", help="Not before: 18:30, '2027-01-31 07:00', or from now on: 90m."),
    ] = None,
    every: Annotated[
        str | None, Option("--every", metavar="SPAN", help="Again after this time, in a new thread: 30m, 12h, 1d.")
    ] = None,
    worktree: Annotated[bool, Option("--worktree", help="Work in a git worktree and branch of its own.")] = False,
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
    """Queue a task; `graph-agent worker` runs it. Its questions wait for you: `approvals list`."""
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
    when = (_parse_time(at) if at else None, _parse_interval(every) if every else 0)
    add_task(resolve_database(db), text, workspace or ".", flags, when, in_worktree=worktree, as_json=as_json)


@tasks_app.command("list", cls=PlainCommand)
def list_command(db: Database = None, as_json: AsJson = False) -> None:
    """List all tasks, newest first, with what each does or waits for."""
    from graph_agent.cli.views.tasks import list_tasks

    list_tasks(resolve_database(db), as_json=as_json)


@tasks_app.command("show", cls=PlainCommand)
def show_command(task: _Task, db: Database = None, as_json: AsJson = False) -> None:
    """Show a task: its prompt, how it stands, and what to do next."""
    from graph_agent.cli.views.tasks import show_task

    show_task(resolve_database(db), task, as_json=as_json)


@tasks_app.command("cancel", cls=PlainCommand)
def cancel_command(task: _Task, db: Database = None, as_json: AsJson = False) -> None:
    """Cancel a task. A worker that runs it stops its turn; its thread is kept."""
    from graph_agent.cli.views.tasks import cancel_task

    cancel_task(resolve_database(db), task, as_json=as_json)


@tasks_app.command("retry", cls=PlainCommand)
def retry_command(task: _Task, db: Database = None, as_json: AsJson = False) -> None:
    """Queue a failed or cancelled task again; its thread continues where it stands."""
    from graph_agent.cli.views.tasks import retry_task

    retry_task(resolve_database(db), task, as_json=as_json)


def worker_command(
    *,
    jobs: Annotated[int, Option("-j", "--jobs", min=1, metavar="N", help="Tasks to run at a time.")] = 1,
    once: Annotated[bool, Option("--once", help="End when no task can run.")] = False,
    grace: Annotated[
        str, Option("--grace", metavar="SPAN", help="How long running turns may go on after SIGTERM or Ctrl-C.")
    ] = "30s",
    db: Database = None,
) -> None:
    """Run queued tasks without a person. Questions wait for you while it runs other tasks."""
    from graph_agent.cli.views.format import parse_duration
    from graph_agent.cli.views.tasks import run_worker

    raise typer.Exit(run_worker(resolve_database(db), jobs, parse_duration(grace, "--grace"), until_idle=once))


def top_command(
    *,
    once: Annotated[bool, Option("--once", help="Print it once and end.")] = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Watch workers, tasks, and the threads that run or wait for you. Ctrl-C ends it."""
    from graph_agent.cli.views.tasks import show_overview

    show_overview(resolve_database(db), once=once, as_json=as_json)


@worktrees_app.command("list", cls=PlainCommand)
def list_worktrees_command(workspace: _InRepository = None, as_json: AsJson = False) -> None:
    """List the worktrees that threads of this repository work in."""
    from graph_agent.cli.views.tasks import list_worktrees

    list_worktrees(workspace or ".", as_json=as_json)


@worktrees_app.command("remove", cls=PlainCommand)
def remove_worktree_command(name: _Name, workspace: _InRepository = None, as_json: AsJson = False) -> None:
    """Remove a worktree whose changes are all committed; its branch stays if it has commits of its own."""
    from graph_agent.cli.views.tasks import remove_worktree

    remove_worktree(workspace or ".", name, as_json=as_json)


def _parse_time(text: str) -> datetime:
    """The time of `--at`, in the local zone if it names none.

    Raises:
        BadParameter: it is no such time.
    """
    from graph_agent.cli.views.format import parse_duration
    from graph_agent.errors import UsageError

    now = datetime.now().astimezone()
    try:
        return now + timedelta(seconds=parse_duration(text, "--at"))
    except UsageError:
        pass
    try:
        clock = datetime.strptime(text.strip(), "%H:%M").time()  # noqa: DTZ007 - of today, in the local zone
    except ValueError:
        pass
    else:
        today = now.replace(hour=clock.hour, minute=clock.minute, second=0, microsecond=0)
        return today if today >= now else today + timedelta(days=1)
    try:
        return datetime.fromisoformat(text.strip()).astimezone()
    except ValueError:
        raise typer.BadParameter(
            f"--at {text!r} is not a time. Examples: 18:30, 2027-01-31, '2027-01-31 07:00', 90m (from now)."
        ) from None


def _parse_interval(text: str) -> int:
    """The seconds of `--every`.

    Raises:
        BadParameter: it is shorter than a minute.
    """
    from graph_agent.cli.views.format import parse_duration

    seconds = int(parse_duration(text, "--every"))
    if seconds < 60:
        raise typer.BadParameter(f"--every {text!r} is too short; the least is 1m.")
    return seconds
