"""The `inspect` command."""

from typing import Annotated

import typer

from graph_agent.cli.options import AsJson, Database

__all__ = ["inspect_command"]


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
    from graph_agent.cli.views.inspection import inspect_state, watch_state
    from graph_agent.cli.views.place import database_of, workspace_of

    if not (watched or until):
        inspect_state(database_of(db), target, workspace_of(db), path=path, as_json=as_json, full=full)
        return
    if path is not None:
        raise typer.BadParameter("--watch shows the whole state; leave --path out with it")
    watch_state(database_of(db), target, workspace_of(db), until=until, as_json=as_json, full=full)
