"""The commands that read the state of threads, and those that change, copy or delete it."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from graph_agent.cli.command_types import PlainCommand, command_group
from graph_agent.cli.options import AsJson, Database, default_workspace, resolve_database

if TYPE_CHECKING:
    from graph_agent.app.rewind import RewindRequest
    from graph_agent.ports import RewindScope
    from graph_agent.session.time_travel import RewindPlan


__all__ = [
    "Format",
    "calls_command",
    "compact_command",
    "diff_command",
    "fork_command",
    "graph_command",
    "history_command",
    "inspect_command",
    "rewind_command",
    "threads_app",
]


class Format(StrEnum):
    """Formats of `export`."""

    json = "json"
    md = "md"
    html = "html"


threads_app = command_group("List, show, search, export, import, rename, delete and prune threads.")


@threads_app.command("list", cls=PlainCommand)
def list_command(db: Database = None, as_json: AsJson = False) -> None:
    """List all threads, newest first, and what each is waiting for."""
    from graph_agent.cli.views.threads import list_threads

    list_threads(resolve_database(db), as_json=as_json)


@threads_app.command("show", cls=PlainCommand)
def show_command(
    thread: Annotated[str, Argument(help="Thread, checkpoint or call id. Default: the newest thread here.")] = "",
    full: Annotated[bool, Option("--full", help="Show every message in full.")] = False,
    all_branches: Annotated[bool, Option("--all-branches", help="Include abandoned branches.")] = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show one thread: status, holding process, open calls, conversation."""
    from graph_agent.cli.views.threads import show_thread

    database, here = resolve_database(db), default_workspace(db)
    show_thread(database, thread, here, as_json=as_json, full=full, all_branches=all_branches)


@threads_app.command("diff", cls=PlainCommand)
def diff_files_command(
    thread: Annotated[str, Argument(help="Thread id. Default: the newest thread here.")] = "",
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show the thread's file changes as a unified diff."""
    from graph_agent.cli.views.threads import show_changes

    show_changes(resolve_database(db), thread, default_workspace(db), as_json=as_json)


@threads_app.command("prune", cls=PlainCommand)
def prune_command(
    thread: Annotated[str, Argument(help="Thread id. Default: all threads.")] = "",
    *,
    keep: Annotated[
        int | None,
        Option("--keep", min=1, metavar="N", help="Turns that can still be rewound to. Default: keep_turns."),
    ] = None,
    older_than: Annotated[
        str | None, Option("--older-than", metavar="AGE", help="Only threads idle for this long, e.g. 30d.")
    ] = None,
    max_size: Annotated[
        str | None,
        Option("--max-size", metavar="SIZE", help="Keep fewer turns until the database is smaller, e.g. 1G."),
    ] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Delete old checkpoints and reclaim disk space. Threads stay complete; the last turns can be rewound to."""
    import os
    from asyncio import run
    from datetime import timedelta

    from graph_agent.app.threads import PruneOrder, prune
    from graph_agent.cli.views.format import parse_duration
    from graph_agent.cli.views.thread_files import parse_size, print_pruned
    from graph_agent.config.sources import load_settings

    order = PruneOrder(
        keep or load_settings(os.environ, flags={"database": db} if db else {}).keep_turns,
        thread,
        timedelta(seconds=parse_duration(older_than, "--older-than")) if older_than else None,
        parse_size(max_size) if max_size else None,
    )
    print_pruned(run(prune(resolve_database(db), order)), as_json=as_json)


@threads_app.command("search", cls=PlainCommand)
def search_command(
    text: Annotated[str, Argument(help="Words; all must occur.")],
    *,
    limit: Annotated[int, Option("--limit", min=1, metavar="N", help="Maximum number of results.")] = 20,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Search messages across all threads, newest first."""
    from graph_agent.cli.views.threads import search_threads

    search_threads(resolve_database(db), text, limit, as_json=as_json)


@threads_app.command("rename", cls=PlainCommand)
def rename_command(
    thread: Annotated[str, Argument(help="Thread id.")],
    title: Annotated[str, Argument(help="The new title.")],
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Rename a thread."""
    from asyncio import run

    from graph_agent.app.threads import rename
    from graph_agent.cli.views.table import print_result

    thread_id, new = run(rename(resolve_database(db), thread, title))
    print_result({"thread_id": thread_id, "title": new}, f"Renamed {thread_id}: {new}", as_json=as_json)


@threads_app.command("say", cls=PlainCommand)
def say_command(
    thread: Annotated[str, Argument(help="Thread id.")],
    message: Annotated[str, Argument(help="The message.")],
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Queue a message for a thread. A running turn gets it with its next model request."""
    from asyncio import run

    from graph_agent.app.threads import say
    from graph_agent.cli.views.table import print_result

    thread_id = run(say(resolve_database(db), thread, message))
    print_result({"thread_id": thread_id, "message": message}, f"Queued for {thread_id}", as_json=as_json)


@threads_app.command("delete", cls=PlainCommand)
def delete_command(
    threads: Annotated[list[str], Argument(metavar="ID...", help="Thread ids.")],
    *,
    yes: Annotated[bool, Option("--yes", help="Do not ask for confirmation.")] = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Delete threads with their messages and calls. If one cannot be deleted, none is."""
    from asyncio import run

    from graph_agent.app.threads import delete
    from graph_agent.cli.views.threads import confirm_delete, print_deleted

    if as_json and not yes:
        raise typer.BadParameter("--json cannot ask for confirmation; add --yes.")
    done = run(delete(resolve_database(db), threads, (lambda _: True) if yes else confirm_delete))
    print_deleted(done, as_json=as_json)
    if not done.threads:
        raise typer.Exit(1)


@threads_app.command("export", cls=PlainCommand)
def export_command(
    thread: Annotated[str, Argument(help="Thread id. Default: the newest thread here.")] = "",
    *,
    form: Annotated[
        Format | None,
        Option(
            "--format",
            help="json is lossless and importable; md and html are for reading. Default: by FILE's name.",
        ),
    ] = None,
    output: Annotated[str, Option("--output", metavar="FILE", help="Output file; - is stdout.")] = "-",
    db: Database = None,
) -> None:
    """Export a thread. Known secrets are redacted."""
    from graph_agent.cli.views.thread_files import export_thread

    export_thread(resolve_database(db), thread, default_workspace(db), form and form.value, output)


@threads_app.command("import", cls=PlainCommand)
def import_command(
    file: Annotated[str, Argument(metavar="FILE", help="Exported file; - is stdin.")],
    *,
    as_id: Annotated[
        str | None, Option("--as", metavar="ID", help="Id of the imported thread. Default: its old id.")
    ] = None,
    workspace: Annotated[
        str | None, Option("--workspace", metavar="DIR", help="Folder it works in. Default: the current one.")
    ] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Import a thread into this folder. Open calls are re-evaluated and need approval again."""
    from asyncio import run

    from graph_agent.app.opening import existing_folder
    from graph_agent.app.thread_import import import_thread
    from graph_agent.cli.views.thread_files import print_imported

    folder = existing_folder(Path(workspace or "."))
    done = run(import_thread(resolve_database(db), file, workspace=folder, as_id=as_id))
    print_imported(done, as_json=as_json)


def inspect_command(
    target: Annotated[
        str, Argument(metavar="[ID]", help="Thread, checkpoint or call id. Default: the newest thread here.")
    ] = "",
    *,
    path: Annotated[
        str | None, Option("--path", metavar="PATH", help="Only this value, e.g. messages.3.content.")
    ] = None,
    full: Annotated[bool, Option("--full", help="Do not shorten anything.")] = False,
    watched: Annotated[
        bool, Option("--watch", help="Print again on every change; with --json one line each time.")
    ] = False,
    until: Annotated[
        str | None,
        Option("--until", metavar="STATUS", help="Watch until the thread has this status: idle, waiting, ..."),
    ] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show the state of the graph: next nodes, tasks, interrupts, pending writes, calls, values, messages."""
    from graph_agent.cli.views.inspection import inspect_state, watch_state

    if not (watched or until):
        inspect_state(resolve_database(db), target, default_workspace(db), path=path, as_json=as_json, full=full)
        return
    if path is not None:
        raise typer.BadParameter("--path cannot be combined with --watch or --until.")
    watch_state(resolve_database(db), target, default_workspace(db), until=until, as_json=as_json, full=full)


_Verbose = Annotated[bool, Option("-v", "--verbose", help="Print date and time instead of how long ago.")]


def calls_command(
    thread: Annotated[str | None, Argument(help="Thread, checkpoint or call id. Default: all threads.")] = None,
    status: Annotated[str | None, Option("--status", help="Only calls with this status or outcome.")] = None,
    tool: Annotated[str | None, Option("--tool", help="Only calls of this tool.")] = None,
    is_verbose: _Verbose = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show the call log: every call with status, risk, time and attempt. With a call id, the whole call."""
    from graph_agent.cli.views.calls import list_calls

    list_calls(resolve_database(db), thread, status=status, tool=tool, is_verbose=is_verbose, as_json=as_json)


def history_command(
    thread: Annotated[str, Argument(help="Thread, checkpoint or call id. Default: the newest thread here.")] = "",
    last: Annotated[int | None, Option("--last", min=1, help="Only the newest N.")] = None,
    is_verbose: _Verbose = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """List the checkpoints of a thread, newest first. Resume, fork, rewind and inspect take their ids."""
    from graph_agent.cli.views.inspection import show_history

    workspace = default_workspace(db)
    show_history(resolve_database(db), thread, workspace, last=last, is_verbose=is_verbose, as_json=as_json)


_ID = "Checkpoint id, or a thread id for its newest checkpoint."


def diff_command(
    old: Annotated[str, Argument(metavar="A", help=_ID)],
    new: Annotated[str, Argument(metavar="B", help=f"{_ID} May be of another thread.")],
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Diff the state of two checkpoints. Messages and calls are compared by id."""
    from graph_agent.cli.views.inspection import show_difference

    show_difference(resolve_database(db), old, new, default_workspace(db), as_json=as_json)


def graph_command(
    target: Annotated[
        str, Argument(metavar="[ID]", help="Thread, checkpoint or call id: marks its current node, shows visits.")
    ] = "",
    *,
    format_name: Annotated[
        str | None, Option("--format", metavar="terminal|mermaid", help="Default: by the file name of --output.")
    ] = None,
    output: Annotated[
        Path | None, Option("--output", metavar="FILE", help="Write to FILE instead of the terminal.")
    ] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """List the nodes and edges of the graph, or print Mermaid. With an ID, mark the thread's current node."""
    from graph_agent.cli.views.inspection import show_graph

    database = resolve_database(db) if target or db else None
    show_graph(database, target, default_workspace(db), format_name=format_name, output=output, as_json=as_json)


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
        str,
        Argument(
            metavar="[ID]",
            help="Checkpoint id; or a thread id, to choose a message or with --undo. Default: the newest thread.",
        ),
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
    """Restore the conversation and files to before a message, or to a checkpoint, after a preview."""
    from graph_agent.app.rewind import RewindRequest

    is_asking = sys.stdin.isatty() and sys.stdout.isatty() and not (undo or as_json)
    if not checkpoint and not (undo or is_asking):
        raise typer.BadParameter("Name a CHECKPOINT, or undo the last rewind with --undo.")
    if as_json and not (yes or dry_run):
        raise typer.BadParameter("--json cannot ask for confirmation; add --yes or --dry-run.")
    scope = _scope(files_only=files_only, chat_only=chat_only)
    if is_asking:
        from graph_agent.cli.views.time_travel import choose_rewind_point, is_thread

        database, here = resolve_database(db), default_workspace(db)
        if is_thread(database, checkpoint, here):
            checkpoint, chosen = choose_rewind_point(database, checkpoint, here)
            scope = chosen if scope == "both" else scope
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
