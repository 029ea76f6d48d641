"""The `doctor` command: what works on this machine, and what to do about what does not."""

from pathlib import Path
from typing import Annotated

import typer

from graph_agent.cli.options import AsJson, Database

__all__ = ["doctor_command"]


def doctor_command(
    backup: Annotated[
        Path | None,
        typer.Option("--backup", metavar="FILE", help="Copy the database there, whole, also while others write."),
    ] = None,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Mend what can be mended, saying what is done; a damaged file is kept."),
    ] = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Check versions, settings, model, programs, database, permissions and terminal; exit code 1 when one fails."""
    from graph_agent.cli.views.doctor import copy_database, tell_health
    from graph_agent.cli.views.place import database_of

    if backup is not None:
        copy_database(database_of(db), backup, as_json=as_json)
    if repair:
        from graph_agent.app.repairing import repair as carry_out
        from graph_agent.cli.views.repairs import mend

        mend(database_of(db), carry_out, as_json=as_json)
    elif backup is None:
        tell_health(database_of(db), as_json=as_json)
