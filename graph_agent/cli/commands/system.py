"""The `doctor` and `demo` commands."""

from pathlib import Path
from typing import Annotated

from typer import Option

from graph_agent.cli.options import AsJson, Database, resolve_database

__all__ = ["demo_command", "doctor_command"]


def doctor_command(
    backup: Annotated[
        Path | None, Option("--backup", metavar="FILE", help="Back up the database (safe while in use).")
    ] = None,
    repair: Annotated[bool, Option("--repair", help="Fix what can be fixed; a damaged file is kept.")] = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Check versions, settings, model, programs, database, permissions and terminal. Exit code 1 on failure."""
    from graph_agent.cli.views.doctor import copy_database, print_checks

    if backup is not None:
        copy_database(resolve_database(db), backup, as_json=as_json)
    if repair:
        from graph_agent.app.repair import repair as apply_rewind
        from graph_agent.cli.views.doctor import repair_installation

        repair_installation(resolve_database(db), apply_rewind, as_json=as_json)
    elif backup is None:
        print_checks(resolve_database(db), as_json=as_json)


def demo_command(
    yes: Annotated[bool, Option("--yes", help="Answer the questions automatically.")] = False,
    keep: Annotated[bool, Option("--keep", help="Keep the files of the demo.")] = False,
) -> None:
    """Show an approval, kill -9 during a call, its recovery and a rewind. Offline, one minute, throwaway files."""
    from graph_agent.cli.demo.script import run_demo

    run_demo(is_asking=not yes, is_kept=keep)
