"""The `doctor` command: what works on this machine, and what to do about what does not.

The `demo` command: what the program promises, shown on files that are gone afterwards.
"""

from pathlib import Path
from typing import Annotated

import typer

from graph_agent.cli.options import AsJson, Database

__all__ = ["demo_command", "doctor_command"]


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
    from graph_agent.cli.views.doctor import copy_database, print_checks
    from graph_agent.cli.views.format import resolve_database

    if backup is not None:
        copy_database(resolve_database(db), backup, as_json=as_json)
    if repair:
        from graph_agent.app.repair import repair as carry_out
        from graph_agent.cli.views.doctor import repair_installation

        repair_installation(resolve_database(db), carry_out, as_json=as_json)
    elif backup is None:
        print_checks(resolve_database(db), as_json=as_json)


def demo_command(
    yes: Annotated[bool, typer.Option("--yes", help="Ask nobody: answer the questions by itself.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the files of the demo where they are.")] = False,
) -> None:
    """Show in a minute, offline, on throwaway files: a question, kill -9 inside a call, its recovery, a rewind."""
    from graph_agent.cli.demo.script import run_demo

    run_demo(is_asking=not yes, is_kept=keep)
