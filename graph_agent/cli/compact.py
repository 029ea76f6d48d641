"""The `compact` command: makes what the model is told of a thread shorter, and asks the model for nothing else."""

from typing import Annotated

import typer

from graph_agent.cli.options import AsJson, Database

__all__ = ["compact_command"]


def compact_command(
    thread: Annotated[str, typer.Argument(metavar="THREAD", help="Thread id, or a part of it.")],
    *,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Make what the model is told of a thread shorter, as happens by itself too; nothing of the thread is lost."""
    from asyncio import run

    from graph_agent.cli.compacting import compact

    run(compact(thread, db, as_json=as_json))
