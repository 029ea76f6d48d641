"""The `approvals` commands: see and answer questions from any process. They never run the graph.

The `recover` command: see and decide interrupted calls from any process. It never runs the graph.
"""

from enum import StrEnum
from typing import Annotated

import typer

from graph_agent.cli.command_types import PlainCommand, PlainGroup
from graph_agent.cli.options import AsJson, Database

__all__ = ["Scope", "approvals_app", "recover_command"]

approvals_app = typer.Typer(
    help="List the calls that wait for an approval, answer one.",
    cls=PlainGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


class Scope(StrEnum):
    """Where an approval given for always holds."""

    thread = "thread"
    project = "project"
    user = "user"


_Call = Annotated[str, typer.Argument(metavar="CALL", help="Call id, a part of one, or THREAD:CALL.")]


@approvals_app.command("list", cls=PlainCommand)
def list_command(
    *,
    thread: Annotated[
        str | None, typer.Option("--thread", metavar="ID", help="Only of this thread; any part of its id.")
    ] = None,
    tool: Annotated[str | None, typer.Option("--tool", metavar="NAME", help="Only calls of this tool.")] = None,
    risk: Annotated[
        str | None, typer.Option("--risk", metavar="low|medium|high", help="Only calls of this risk.")
    ] = None,
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="SPAN", help="Only asked this long ago: 90s, 10m, 2h, 3d.")
    ] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """List every waiting call of every thread, or of those that are asked for."""
    from graph_agent.cli.views.approvals import ApprovalFilter, list_approvals
    from graph_agent.cli.views.format import resolve_database

    list_approvals(resolve_database(db), ApprovalFilter(thread, tool, risk, older_than), as_json=as_json)


@approvals_app.command("approve", cls=PlainCommand)
def approve_command(
    call: _Call,
    *,
    always: Annotated[
        bool, typer.Option("--always", help="Let what is exactly like it run unasked from now on; shows the rule.")
    ] = False,
    scope: Annotated[
        Scope | None, typer.Option("--scope", help="With --always: where that holds; thread when left out.")
    ] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Approve a call as it is shown; whoever holds its thread goes on at once."""
    if always:
        from graph_agent.cli.views.decisions import allow

        allow(call, (scope or Scope.thread).value, db, as_json=as_json)
        return
    if scope is not None:
        raise typer.BadParameter(f"--scope {scope.value} says where --always holds; give both, or neither")
    from graph_agent.cli.views.answers import answer_call

    answer_call(call, "approve", "", db, as_json=as_json)


@approvals_app.command("reject", cls=PlainCommand)
def reject_command(
    call: _Call,
    reason: Annotated[str, typer.Option("--reason", help="What the model is told.")] = "",
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Refuse a call; the model is told why."""
    from graph_agent.cli.views.answers import answer_call

    answer_call(call, "reject", reason, db, as_json=as_json)


@approvals_app.command("answer", cls=PlainCommand)
def answer_command(
    call: _Call,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="What the model is told; one of the options, or not.")
    ],
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Answer a question that the model asks you."""
    from graph_agent.cli.views.answers import answer_call

    if not text.strip():
        raise typer.BadParameter(f"TEXT is empty; `approvals reject {call}` leaves a question unanswered")
    answer_call(call, "answer", text, db, as_json=as_json)


@approvals_app.command("edit", cls=PlainCommand)
def edit_command(
    call: _Call,
    arguments: Annotated[
        str, typer.Option("--arguments", metavar="JSON", help="All arguments of the call, as one JSON object.")
    ],
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Approve a call with other arguments; refused where it may not run with them."""
    from graph_agent.cli.views.decisions import edit_call

    edit_call(call, arguments, db, as_json=as_json)


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
    from graph_agent.cli.views.format import resolve_database
    from graph_agent.cli.views.recovery import RecoveryChoices, list_interrupted, resolve_calls

    choices = RecoveryChoices(tuple(retry or ()), tuple(done or ()), tuple(cancel or ()), everything, result)
    if choices.are_made:
        resolve_calls(resolve_database(db), thread, choices, end_processes=end_processes, as_json=as_json)
    else:
        list_interrupted(resolve_database(db), thread, as_json=as_json)
