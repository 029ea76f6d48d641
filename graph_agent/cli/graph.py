"""The `graph` command."""

from pathlib import Path
from typing import Annotated

import typer

from graph_agent.cli.options import AsJson, Database

__all__ = ["graph_command"]


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
    from graph_agent.cli.views.graph import Drawing, draw_graph
    from graph_agent.cli.views.place import database_of, workspace_of

    drawing = Drawing.of(form, output, is_ascii=no_unicode, as_json=as_json)
    is_of_thread = bool(target or db)
    draw_graph(database_of(db) if is_of_thread else None, target, workspace_of(db), drawing)
