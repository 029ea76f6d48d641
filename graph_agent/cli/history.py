"""The `history` command."""

from typing import Annotated

import typer

from graph_agent.cli.options import AsJson, Database

__all__ = ["history_command"]


def history_command(
    thread: Annotated[
        str, typer.Argument(help="Thread, checkpoint or call id, or a part of one; else the newest here.")
    ] = "",
    last: Annotated[int | None, typer.Option("--last", min=1, help="Only so many, the newest.")] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """List the checkpoints of a thread, newest first: each can be resumed, forked, rewound to and inspected."""
    from graph_agent.cli.views.history import show_history
    from graph_agent.cli.views.place import database_of, workspace_of

    show_history(database_of(db), thread, workspace_of(db), last=last, as_json=as_json)
