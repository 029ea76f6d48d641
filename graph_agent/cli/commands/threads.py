"""The `threads` commands."""

from enum import StrEnum
from typing import Annotated

import typer
from typer import Argument, Option

from graph_agent.cli.command_types import PlainCommand, command_group
from graph_agent.cli.options import AsJson, Database, default_workspace, resolve_database

__all__ = ["Format", "threads_app"]


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
def diff_command(
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
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Import a thread. Open calls are re-evaluated and need approval again."""
    from asyncio import run

    from graph_agent.app.thread_import import import_thread
    from graph_agent.cli.views.thread_files import print_imported

    print_imported(run(import_thread(resolve_database(db), file, as_id=as_id)), as_json=as_json)
