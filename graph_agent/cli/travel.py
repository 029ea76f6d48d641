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
    from graph_agent.cli.views.forks import fork_thread
    from graph_agent.cli.views.place import database_of, workspace_of

    fork_thread(database_of(db), checkpoint, workspace_of(db), as_id=as_id, as_json=as_json)
