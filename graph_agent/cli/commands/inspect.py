"""The `inspect` command.

The `calls` command.

The `history` command.

The `diff` command.

The `graph` command.
"""

from pathlib import Path
from typing import Annotated

import typer

from graph_agent.cli.options import AsJson, Database

__all__ = ["calls_command", "diff_command", "graph_command", "history_command", "inspect_command"]


def inspect_command(
    target: Annotated[
        str,
        typer.Argument(
            metavar="[ID]", help="Thread, checkpoint or call id, or a part of one; else the newest here."
        ),
    ] = "",
    *,
    path: Annotated[
        str | None, typer.Option("--path", metavar="PATH", help="Only this piece, such as messages.3.content.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Cut nothing off.")] = False,
    watched: Annotated[
        bool, typer.Option("--watch", help="Show it again each time it changes; with --json a line each time.")
    ] = False,
    until: Annotated[
        str | None, typer.Option("--until", metavar="STATUS", help="Watch until the thread has this status.")
    ] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show the state of the graph: next nodes, tasks, interrupts, pending writes, calls, values, messages."""
    from graph_agent.cli.views.format import default_workspace, resolve_database
    from graph_agent.cli.views.inspection import inspect_state, watch_state

    if not (watched or until):
        inspect_state(resolve_database(db), target, default_workspace(db), path=path, as_json=as_json, full=full)
        return
    if path is not None:
        raise typer.BadParameter("--watch shows the whole state; leave --path out with it")
    watch_state(resolve_database(db), target, default_workspace(db), until=until, as_json=as_json, full=full)


def calls_command(
    thread: Annotated[
        str | None, typer.Argument(help="Thread, checkpoint or call id, or a part of one; else every thread.")
    ] = None,
    status: Annotated[str | None, typer.Option("--status", help="Only calls with this status.")] = None,
    tool: Annotated[str | None, typer.Option("--tool", help="Only calls of this tool.")] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show the ledger: every call with its status, risk, time and attempt. A call that is named is shown whole."""
    from graph_agent.cli.views.calls import list_calls
    from graph_agent.cli.views.format import resolve_database

    list_calls(resolve_database(db), thread, status=status, tool=tool, as_json=as_json)


def history_command(
    thread: Annotated[
        str, typer.Argument(help="Thread, checkpoint or call id, or a part of one; else the newest here.")
    ] = "",
    last: Annotated[int | None, typer.Option("--last", min=1, help="Only so many, the newest.")] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """List the checkpoints of a thread, newest first: each can be resumed, forked, rewound to and inspected."""
    from graph_agent.cli.views.checkpoints import show_history
    from graph_agent.cli.views.format import default_workspace, resolve_database

    show_history(resolve_database(db), thread, default_workspace(db), last=last, as_json=as_json)


_ID = "Checkpoint, or a thread for its newest; a part of an id will do."


def diff_command(
    old: Annotated[str, typer.Argument(metavar="A", help=_ID)],
    new: Annotated[str, typer.Argument(metavar="B", help=f"{_ID} They may be of different threads.")],
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show what differs between the states of two checkpoints; messages and calls are compared by their ids."""
    from graph_agent.cli.views.checkpoints import show_difference
    from graph_agent.cli.views.format import default_workspace, resolve_database

    show_difference(resolve_database(db), old, new, default_workspace(db), as_json=as_json)


def graph_command(
    target: Annotated[
        str,
        typer.Argument(
            metavar="[ID]",
            help="Thread, checkpoint or call id, or a part of one: marks where it stands and counts the visits.",
        ),
    ] = "",
    *,
    form: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="FORMAT", help="terminal, mermaid, svg or png; else by the end of --output."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Write there, not to the terminal.")
    ] = None,
    no_unicode: Annotated[bool, typer.Option("--no-unicode", help="Draw with ASCII characters only.")] = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Draw the graph; with an ID or --db also where that thread stands and how it came there."""
    from graph_agent.cli.views.format import default_workspace, resolve_database
    from graph_agent.cli.views.graph import GraphOutput, show_graph

    drawing = GraphOutput.of(form, output, is_ascii=no_unicode, as_json=as_json)
    is_of_thread = bool(target or db)
    show_graph(resolve_database(db) if is_of_thread else None, target, default_workspace(db), drawing)
