"""The `recover` command: see and decide interrupted calls from any process. It never runs the graph."""

from typing import Annotated

import typer

from graph_agent.cli.options import AsJson, Database

__all__ = ["recover_command"]


def recover_command(
    thread: Annotated[
        str | None, typer.Argument(help="Thread or checkpoint id, or a part of one; else every thread.")
    ] = None,
    *,
    retry: Annotated[
        list[str] | None,
        typer.Option("--retry", metavar="CALL", help="Run it again, as a new attempt; repeatable."),
    ] = None,
    done: Annotated[
        list[str] | None,
        typer.Option("--done", metavar="CALL", help="Its effect is there: take it as done; repeatable."),
    ] = None,
    result: Annotated[str, typer.Option("--result", help="With --done: what the model is told it did.")] = "",
    cancel: Annotated[
        list[str] | None, typer.Option("--cancel", metavar="CALL", help="Give it up; repeatable.")
    ] = None,
    everything: Annotated[
        str | None,
        typer.Option("--all", metavar="retry|done|cancel", help="Decide every other interrupted call this way."),
    ] = None,
    end_processes: Annotated[
        bool, typer.Option("--end-processes", help="First end what the calls left running.")
    ] = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show the calls that were broken off, or decide what becomes of them; whoever holds the thread goes on."""
    from graph_agent.cli.views.place import database_of
    from graph_agent.cli.views.recovery import Choices, decide, list_interrupted

    choices = Choices(tuple(retry or ()), tuple(done or ()), tuple(cancel or ()), everything, result)
    if choices.are_made:
        decide(database_of(db), thread, choices, end_processes=end_processes, as_json=as_json)
    else:
        list_interrupted(database_of(db), thread, as_json=as_json)
