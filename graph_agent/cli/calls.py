"""The `calls` command."""

from typing import Annotated

import typer

from graph_agent.cli.options import AsJson, Database

__all__ = ["calls_command"]


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
    from graph_agent.cli.views.place import database_of

    list_calls(database_of(db), thread, status=status, tool=tool, as_json=as_json)
