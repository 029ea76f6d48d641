"""The commands that read the state of threads: `inspect`, `calls`, `history`, `diff` and `graph`."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from graph_agent.cli.options import AsJson, Database, default_workspace, resolve_database

__all__ = ["calls_command", "diff_command", "graph_command", "history_command", "inspect_command"]


def inspect_command(
    target: Annotated[
        str, Argument(metavar="[ID]", help="Thread, checkpoint or call id. Default: the newest thread here.")
    ] = "",
    *,
    path: Annotated[
        str | None, Option("--path", metavar="PATH", help="Only this value, e.g. messages.3.content.")
    ] = None,
    full: Annotated[bool, Option("--full", help="Do not shorten anything.")] = False,
    watched: Annotated[
        bool, Option("--watch", help="Print again on every change; with --json one line each time.")
    ] = False,
    until: Annotated[
        str | None,
        Option("--until", metavar="STATUS", help="Watch until the thread has this status: idle, waiting, ..."),
    ] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show the state of the graph: next nodes, tasks, interrupts, pending writes, calls, values, messages."""
    from graph_agent.cli.views.inspection import inspect_state, watch_state

    if not (watched or until):
        inspect_state(resolve_database(db), target, default_workspace(db), path=path, as_json=as_json, full=full)
        return
    if path is not None:
        raise typer.BadParameter("--path cannot be combined with --watch or --until.")
    watch_state(resolve_database(db), target, default_workspace(db), until=until, as_json=as_json, full=full)


def calls_command(
    thread: Annotated[str | None, Argument(help="Thread, checkpoint or call id. Default: all threads.")] = None,
    status: Annotated[str | None, Option("--status", help="Only calls with this status.")] = None,
    tool: Annotated[str | None, Option("--tool", help="Only calls of this tool.")] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show the call log: every call with status, risk, time and attempt. With a call id, the whole call."""
    from graph_agent.cli.views.calls import list_calls

    list_calls(resolve_database(db), thread, status=status, tool=tool, as_json=as_json)


def history_command(
    thread: Annotated[str, Argument(help="Thread, checkpoint or call id. Default: the newest thread here.")] = "",
    last: Annotated[int | None, Option("--last", min=1, help="Only the newest N.")] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """List the checkpoints of a thread, newest first. Resume, fork, rewind and inspect take their ids."""
    from graph_agent.cli.views.inspection import show_history

    show_history(resolve_database(db), thread, default_workspace(db), last=last, as_json=as_json)


_ID = "Checkpoint id, or a thread id for its newest checkpoint."


def diff_command(
    old: Annotated[str, Argument(metavar="A", help=_ID)],
    new: Annotated[str, Argument(metavar="B", help=f"{_ID} May be of another thread.")],
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Diff the state of two checkpoints. Messages and calls are compared by id."""
    from graph_agent.cli.views.inspection import show_difference

    show_difference(resolve_database(db), old, new, default_workspace(db), as_json=as_json)


def graph_command(
    target: Annotated[
        str, Argument(metavar="[ID]", help="Thread, checkpoint or call id: marks its current node, shows visits.")
    ] = "",
    *,
    format_name: Annotated[
        str | None, Option("--format", metavar="terminal|mermaid", help="Default: by the file name of --output.")
    ] = None,
    output: Annotated[
        Path | None, Option("--output", metavar="FILE", help="Write to FILE instead of the terminal.")
    ] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """List the nodes and edges of the graph, or print Mermaid. With an ID, mark the thread's current node."""
    from graph_agent.cli.views.graph import show_graph

    database = resolve_database(db) if target or db else None
    show_graph(database, target, default_workspace(db), format_name=format_name, output=output, as_json=as_json)
