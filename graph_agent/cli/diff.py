"""The `diff` command."""

from typing import Annotated

import typer

from graph_agent.cli.options import AsJson, Database

__all__ = ["diff_command"]

_ID = "Checkpoint, or a thread for its newest; a part of an id will do."


def diff_command(
    old: Annotated[str, typer.Argument(metavar="A", help=_ID)],
    new: Annotated[str, typer.Argument(metavar="B", help=f"{_ID} They may be of different threads.")],
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show what differs between the states of two checkpoints; messages and calls are compared by their ids."""
    from graph_agent.cli.views.diff import show_difference
    from graph_agent.cli.views.place import database_of, workspace_of

    show_difference(database_of(db), old, new, workspace_of(db), as_json=as_json)
