"""The `fork`, `rewind` and `compact` commands."""

from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from graph_agent.cli.options import AsJson, Database, default_workspace, resolve_database

if TYPE_CHECKING:
    from graph_agent.app.rewind import RewindRequest
    from graph_agent.ports import RewindScope
    from graph_agent.session.time_travel import RewindPlan


__all__ = ["compact_command", "fork_command", "rewind_command"]


def fork_command(
    checkpoint: Annotated[
        str, Argument(metavar="CHECKPOINT", help="Checkpoint id, or a thread id for its newest one.")
    ],
    *,
    as_id: Annotated[
        str | None, Option("--as", metavar="ID", help="Id of the new thread. Default: generated.")
    ] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Create a new thread from a checkpoint; the original is unchanged."""
    from asyncio import run

    from graph_agent.app.threads import fork
    from graph_agent.cli.views.time_travel import print_fork

    print_fork(
        run(fork(resolve_database(db), checkpoint, thread_id=as_id, workspace=default_workspace(db))),
        as_json=as_json,
    )


def rewind_command(
    checkpoint: Annotated[
        str, Argument(metavar="[CHECKPOINT]", help="Checkpoint id; with --undo a thread id.")
    ] = "",
    *,
    files_only: Annotated[bool, Option("--files-only", help="Keep the conversation.")] = False,
    chat_only: Annotated[bool, Option("--chat-only", help="Keep the files.")] = False,
    undo: Annotated[bool, Option("--undo", help="Undo the thread's last rewind.")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Only show what would change.")] = False,
    force: Annotated[bool, Option("--force", help="Also restore files that something else changed.")] = False,
    yes: Annotated[bool, Option("--yes", help="Do not ask for confirmation.")] = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Restore the conversation and files to a checkpoint, after a preview."""
    from graph_agent.app.rewind import RewindRequest

    if not checkpoint and not undo:
        raise typer.BadParameter("Name a CHECKPOINT, or undo the last rewind with --undo.")
    if as_json and not (yes or dry_run):
        raise typer.BadParameter("--json cannot ask for confirmation; add --yes or --dry-run.")
    scope = _scope(files_only=files_only, chat_only=chat_only)
    order = RewindRequest(checkpoint, default_workspace(db), scope, is_undo=undo, is_dry=dry_run, is_forced=force)
    _rewind(order, db, is_settled=yes, as_json=as_json)


def _scope(*, files_only: bool, chat_only: bool) -> "RewindScope":
    if files_only and chat_only:
        raise typer.BadParameter(
            "--files-only and --chat-only cannot be combined. Without them, both are restored."
        )
    return "files" if files_only else "chat" if chat_only else "both"


def _rewind(order: "RewindRequest", db: str | None, *, is_settled: bool, as_json: bool) -> None:
    from asyncio import run

    from graph_agent.app.rewind import rewind
    from graph_agent.cli.views.time_travel import confirm_rewind, print_rewind

    shown = []

    def consents(seen: "RewindPlan") -> bool:
        if is_settled:
            return True
        shown.append(seen)
        return confirm_rewind(seen)

    done = run(rewind(resolve_database(db), order, consents))
    print_rewind(done, is_dry=order.is_dry, as_json=as_json, was_shown=bool(shown))


def compact_command(
    thread: Annotated[str, Argument(metavar="THREAD", help="Thread id.")],
    *,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Compact the context that is sent to the model. The full transcript is kept."""
    from asyncio import run

    from graph_agent.cli.headless.run import compact

    run(compact(thread, db, as_json=as_json))
