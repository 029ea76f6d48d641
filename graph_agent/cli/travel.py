"""The commands that travel: `fork` makes a thread from a checkpoint."""

from typing import Annotated

import typer

from graph_agent.cli.options import AsJson, Database

__all__ = ["fork_command"]


def fork_command(
    checkpoint: Annotated[
        str,
        typer.Argument(metavar="CHECKPOINT", help="Checkpoint, or part of its id; a thread means its newest one."),
    ],
    *,
    as_id: Annotated[
        str | None, typer.Option("--as", metavar="ID", help="Id of the new thread; else one of its own.")
    ] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Make a new thread that goes on from a checkpoint; the old one stays as it is."""
    from asyncio import run

    from graph_agent.app.forking import fork
    from graph_agent.cli.views.forks import tell_fork
    from graph_agent.cli.views.place import database_of, workspace_of

    tell_fork(run(fork(database_of(db), checkpoint, thread_id=as_id, workspace=workspace_of(db))), as_json=as_json)
