"""Options that several commands share."""

from typing import Annotated

import typer

__all__ = ["AsJson", "Database"]

Database = Annotated[
    str | None,
    typer.Option(
        "--db", metavar="FILE", help="The database; else GRAPH_AGENT_DB, else the one in the data folder."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout and nothing else.")]
