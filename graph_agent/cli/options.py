"""Options that several commands share."""

from typing import Annotated

import typer

__all__ = ["DATABASE_HELP", "DEBUG_HELP", "AsJson", "Database"]

DEBUG_HELP = "Write tracebacks and all that is logged to the private log file."
DATABASE_HELP = "The database; else GRAPH_AGENT_DB, else the one in the data folder."
Database = Annotated[str | None, typer.Option("--db", metavar="FILE", help=DATABASE_HELP)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout and nothing else.")]
