"""The commands that travel: `fork` makes a thread from a checkpoint, `rewind` puts one back to it.

The `compact` command: makes what the model is told of a thread shorter, and asks the model for nothing else.
"""

from typing import TYPE_CHECKING, Annotated

import typer

from graph_agent.cli.options import AsJson, Database

if TYPE_CHECKING:
    from graph_agent.app.rewind import Order
    from graph_agent.ports import RewindScope
    from graph_agent.session.time_travel import Survey


__all__ = ["compact_command", "fork_command", "rewind_command"]


def fork_command(
    checkpoint: Annotated[
        str,
        typer.Argument(metavar="CHECKPOINT", help="Checkpoint, or part of its id; a thread means its newest one."),
    ],
    *,
    as_id: Annotated[
        str | None, typer.Option("--as", metavar="ID", help="Id of the new thread; else one of its own.")
    ] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Make a new thread that goes on from a checkpoint; the old one stays as it is."""
    from asyncio import run

    from graph_agent.app.threads import fork
    from graph_agent.cli.views.format import default_workspace, resolve_database
    from graph_agent.cli.views.time_travel import print_fork

    print_fork(
        run(fork(resolve_database(db), checkpoint, thread_id=as_id, workspace=default_workspace(db))),
        as_json=as_json,
    )


def rewind_command(
    checkpoint: Annotated[
        str,
        typer.Argument(
            metavar="[CHECKPOINT]", help="Where to go back to, or part of its id; a thread with --undo."
        ),
    ] = "",
    *,
    files_only: Annotated[bool, typer.Option("--files-only", help="Leave the conversation as it is.")] = False,
    chat_only: Annotated[bool, typer.Option("--chat-only", help="Leave the files as they are.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Take back the last rewind of the thread.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what it would do, and do nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Put back files that somebody else changed, too.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Put the conversation, and the files that its tools changed since, back to a checkpoint."""
    from graph_agent.app.rewind import Order
    from graph_agent.cli.views.format import default_workspace

    if not checkpoint and not undo:
        raise typer.BadParameter("name the CHECKPOINT to go back to, or take the last rewind back with --undo")
    if as_json and not (yes or dry_run):
        raise typer.BadParameter("--json asks nobody: give --yes or --dry-run with it")
    scope = _scope(files_only=files_only, chat_only=chat_only)
    order = Order(checkpoint, default_workspace(db), scope, is_undo=undo, is_dry=dry_run, is_forced=force)
    _rewind(order, db, is_settled=yes, as_json=as_json)


def _scope(*, files_only: bool, chat_only: bool) -> "RewindScope":
    if files_only and chat_only:
        raise typer.BadParameter("--files-only and --chat-only exclude each other; without both, both go back")
    return "files" if files_only else "chat" if chat_only else "both"


def _rewind(order: "Order", db: str | None, *, is_settled: bool, as_json: bool) -> None:
    from asyncio import run

    from graph_agent.app.rewind import rewind
    from graph_agent.cli.views.format import resolve_database
    from graph_agent.cli.views.time_travel import confirm_rewind, print_rewind

    shown = []

    def consents(seen: "Survey") -> bool:
        if is_settled:
            return True
        shown.append(seen)
        return confirm_rewind(seen)

    done = run(rewind(resolve_database(db), order, consents))
    print_rewind(done, is_dry=order.is_dry, as_json=as_json, was_shown=bool(shown))


def compact_command(
    thread: Annotated[str, typer.Argument(metavar="THREAD", help="Thread id, or a part of it.")],
    *,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Make what the model is told of a thread shorter, as happens by itself too; nothing of the thread is lost."""
    from asyncio import run

    from graph_agent.cli.headless.run import compact

    run(compact(thread, db, as_json=as_json))
