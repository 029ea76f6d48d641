"""The `threads` commands."""

from enum import StrEnum
from typing import Annotated

import typer

from graph_agent.cli.command_types import PlainCommand, PlainGroup
from graph_agent.cli.options import AsJson, Database

__all__ = ["Format", "threads_app"]


class Format(StrEnum):
    """What `export` writes."""

    json = "json"
    md = "md"
    html = "html"


threads_app = typer.Typer(
    help="List, show, search, export, import, rename, delete and prune threads.",
    cls=PlainGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


@threads_app.command("list", cls=PlainCommand)
def list_command(db: Database = None, as_json: AsJson = False) -> None:
    """List every thread, newest first, with what it waits for."""
    from graph_agent.cli.views.format import resolve_database
    from graph_agent.cli.views.threads import list_threads

    list_threads(resolve_database(db), as_json=as_json)


@threads_app.command("show", cls=PlainCommand)
def show_command(
    thread: Annotated[
        str, typer.Argument(help="Thread, checkpoint or call id, or a part of one; else the newest here.")
    ] = "",
    full: Annotated[bool, typer.Option("--full", help="Show every message, whole.")] = False,
    all_branches: Annotated[
        bool, typer.Option("--all-branches", help="Show what the thread came away from, too.")
    ] = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show one thread: status, who holds it, open calls, conversation."""
    from graph_agent.cli.views.format import default_workspace, resolve_database
    from graph_agent.cli.views.threads import ThreadView, show_thread

    show_thread(
        resolve_database(db),
        thread,
        default_workspace(db),
        ThreadView(as_json=as_json, full=full, all_branches=all_branches),
    )


@threads_app.command("diff", cls=PlainCommand)
def diff_command(
    thread: Annotated[str, typer.Argument(help="Thread, or part of its id; else the newest here.")] = "",
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show what the tools of a thread changed in its workspace, as a unified diff against the files now."""
    from graph_agent.cli.views.file_changes import show_changes
    from graph_agent.cli.views.format import default_workspace, resolve_database

    show_changes(resolve_database(db), thread, default_workspace(db), as_json=as_json)


@threads_app.command("prune", cls=PlainCommand)
def prune_command(
    thread: Annotated[str, typer.Argument(help="Thread, or part of its id; else every thread.")] = "",
    *,
    keep: Annotated[
        int | None, typer.Option("--keep", min=1, metavar="N", help="Turns that stay travelable; else keep_turns.")
    ] = None,
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="AGE", help="Only threads at rest for so long, e.g. 30d.")
    ] = None,
    max_size: Annotated[
        str | None,
        typer.Option(
            "--max-size", metavar="SIZE", help="Keep fewer turns until the database is no bigger, e.g. 1G."
        ),
    ] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Forget old checkpoints and unnamed files; threads stay whole and resumable, their last turns travelable."""
    import os
    from asyncio import run

    from graph_agent.app.threads import PruneOrder, prune
    from graph_agent.cli.views.format import resolve_database
    from graph_agent.cli.views.thread_changes import parse_age, parse_size, print_pruned
    from graph_agent.config.sources import load_settings

    order = PruneOrder(
        keep or load_settings(os.environ, flags={"database": db} if db else {}).keep_turns,
        thread,
        parse_age(older_than) if older_than else None,
        parse_size(max_size) if max_size else None,
    )
    print_pruned(run(prune(resolve_database(db), order)), as_json=as_json)


@threads_app.command("search", cls=PlainCommand)
def search_command(
    text: Annotated[str, typer.Argument(help="Words; each must occur. There are no operators.")],
    *,
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="Show no more than so many.")] = 20,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Find what was said in any thread, newest first."""
    from graph_agent.cli.views.format import resolve_database
    from graph_agent.cli.views.threads import search_threads

    search_threads(resolve_database(db), text, limit, as_json=as_json)


@threads_app.command("rename", cls=PlainCommand)
def rename_command(
    thread: Annotated[str, typer.Argument(help="Thread, or part of its id.")],
    title: Annotated[str, typer.Argument(help="What it is to be called.")],
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Give a thread another title."""
    from asyncio import run

    from graph_agent.app.thread_titles import rename
    from graph_agent.cli.views.format import resolve_database
    from graph_agent.cli.views.threads import print_renamed

    print_renamed(*run(rename(resolve_database(db), thread, title)), as_json=as_json)


@threads_app.command("delete", cls=PlainCommand)
def delete_command(
    threads: Annotated[list[str], typer.Argument(metavar="ID...", help="Threads, or parts of their ids.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Delete threads with all that was said and recorded in them; all of those named, or none."""
    from asyncio import run

    from graph_agent.app.threads import delete
    from graph_agent.cli.views.format import resolve_database
    from graph_agent.cli.views.threads import confirm_delete, print_deleted

    if as_json and not yes:
        raise typer.BadParameter("--json asks nobody: give --yes with it")
    done = run(delete(resolve_database(db), threads, (lambda _: True) if yes else confirm_delete))
    print_deleted(done, as_json=as_json)
    if not done.threads:
        raise typer.Exit(1)


@threads_app.command("export", cls=PlainCommand)
def export_command(
    thread: Annotated[str, typer.Argument(help="Thread, or part of its id; else the newest here.")] = "",
    *,
    form: Annotated[
        Format | None,
        typer.Option(
            "--format", help="json is whole and can be imported; md and html are to be read. Else by FILE's name."
        ),
    ] = None,
    output: Annotated[str, typer.Option("--output", metavar="FILE", help="Where to; - is stdout.")] = "-",
    db: Database = None,
) -> None:
    """Write a thread to a file, without the keys that are known here."""
    from graph_agent.cli.views.format import default_workspace, resolve_database
    from graph_agent.cli.views.thread_changes import export_thread

    export_thread(resolve_database(db), thread, default_workspace(db), form and form.value, output)


@threads_app.command("import", cls=PlainCommand)
def import_command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What `threads export` wrote; - is stdin.")],
    *,
    as_id: Annotated[
        str | None, typer.Option("--as", metavar="ID", help="Id of the thread here; else the one it had.")
    ] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Take an exported thread in; its open calls are judged and asked about anew."""
    from asyncio import run

    from graph_agent.app.thread_import import import_thread
    from graph_agent.cli.views.format import resolve_database
    from graph_agent.cli.views.thread_changes import print_imported

    print_imported(run(import_thread(resolve_database(db), file, as_id=as_id)), as_json=as_json)
