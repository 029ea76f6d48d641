"""`threads export`, `threads import` and `threads prune`: where an export goes, and what each command prints."""

import os
import re
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from graph_agent.app.reader import build_graph
from graph_agent.app.threads import open_export
from graph_agent.cli.export.html import html_page
from graph_agent.cli.export.markdown import markdown_page
from graph_agent.cli.views.format import open_reader
from graph_agent.cli.views.inspection import read_graph
from graph_agent.cli.views.table import print_result, print_text
from graph_agent.cli.views.threads import thread_json
from graph_agent.config.paths import own_command, special_file_kind
from graph_agent.config.redaction import known_secrets
from graph_agent.errors import UnknownId, UsageError
from graph_agent.inspect.transcript import read_transcript
from graph_agent.wording import escape, format_count

if TYPE_CHECKING:
    from graph_agent.app.thread_import import Imported
    from graph_agent.app.threads import Pruned


__all__ = ["export_thread", "parse_size", "print_imported", "print_pruned"]

_BY_SUFFIX = {".md": "md", ".markdown": "md", ".html": "html", ".htm": "html"}
_BYTES = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}


def export_thread(database: Path, text: str, here: str | None, form: str | None, output: str) -> None:
    """Write a thread in a format; without one, in the format of the file's name.

    Raises:
        UsageError: the file cannot be written, or the thread cannot be exported now.
    """
    form = form or _BY_SUFFIX.get(Path(output).suffix.lower(), "json")
    if form == "json":
        with open_export(database, text, here) as lines:
            _write(lines, output)
        return
    with open_reader(database) as reader:
        transcript = read_transcript(reader, text, here, known_secrets(os.environ))
    if form == "md":
        _write(markdown_page(transcript), output)
        return
    try:
        graph = read_graph(database, transcript.thread.thread_id, None)
    except UnknownId:  # The thread has no checkpoint yet.
        graph = build_graph()
    _write(html_page(transcript, graph), output)


def _write(lines: Iterable[str], output: str) -> None:
    """Write atomically to a file that only its owner can read, or with `-` to stdout."""
    if output == "-":
        sys.stdout.writelines(f"{line}\n" for line in lines)
        return
    try:
        # The target of a link is written, so that the link stays.
        path = Path(os.path.realpath(output))
        if kind := special_file_kind(path):
            raise UsageError(f"--output {output!r} is {kind}, not a file. Use - for stdout.")
        # mkstemp makes the file readable by its owner only: an export may hold private content.
        descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in lines)
                file.flush()
                os.fsync(file.fileno())
            Path(draft).replace(path)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UsageError(f"Cannot write --output {output!r}: {error.strerror}.") from error
    except ValueError as error:
        raise UsageError(f"--output {output!r} is not a valid file name: {error}.") from error
    print_text(f"Wrote {output}.")


def print_imported(done: "Imported", *, as_json: bool) -> None:
    """Print the id of the imported thread and how to resume it."""
    thread = done.thread
    renamed = "" if thread.thread_id == done.exported_as else f" (was {done.exported_as})"
    turns = format_count(thread.turns, "turn")
    lines = [
        f"Imported {thread.thread_id}{renamed}: {turns}, {thread.status}. {thread.title}",
        f"Workspace: {thread.workspace}. Change it with resume --workspace DIR.",
    ]
    if done.exported_workspace not in ("", thread.workspace):
        lines.append(f"It worked in {done.exported_workspace} where it was exported; its file changes are history.")
    if done.unsent:
        lines.append(f"{format_count(len(done.unsent), 'queued message')} not sent; send what you still want:")
        lines += [f"  {' '.join(text.split())}" for text in done.unsent]
    if done.missing:
        lines.append(f"{format_count(done.missing, 'file content')} missing in the export.")
    if thread.pending_approvals or thread.interrupted_calls or thread.answered_calls:
        lines.append("Open calls are re-evaluated and need approval again; answers were not imported.")
    lines.append(f"Resume with: {own_command()} resume {thread.thread_id}")
    result = {**thread_json(thread), "exported_as": done.exported_as, "missing_contents": done.missing}
    result |= {"exported_workspace": done.exported_workspace, "unsent_messages": list(done.unsent)}
    print_result(result, map(escape, lines), as_json=as_json)


def parse_size(text: str) -> int:
    """Bytes of a size such as `500MB`, `2G` or `1000000`.

    Raises:
        UsageError: the text is not a size.
    """
    found = re.fullmatch(r"(\d{1,15})\s*([kmgt]?)b?", text.strip().lower())
    if found is None:
        raise UsageError(f"--max-size {text!r} is not a size. Examples: 500MB, 2G.")
    return int(found[1]) * _BYTES[found[2]]


def print_pruned(done: "Pruned", *, as_json: bool) -> None:
    """Print what was deleted, and the size of the database before and after."""

    def megabytes(count: int) -> str:
        return f"{count / 1e6:.1f} MB"

    lines = []
    for one in done.threads:
        if one.checkpoints or one.snapshots:
            checkpoints = format_count(one.checkpoints, "checkpoint")
            lines.append(f"{one.thread_id}: deleted {checkpoints}, {format_count(one.snapshots, 'snapshot')}")
    if empty := sum(one.is_deleted for one in done.threads):
        lines.append(f"Deleted {format_count(empty, 'thread')} without a message")
    lines += [f"Skipped: {one.held_by}" for one in done.threads if one.held_by]
    if done.collected.files:
        lines.append(
            f"Deleted {format_count(done.collected.files, 'unused file')}: {megabytes(done.collected.bytes)}"
        )
    lines.append(f"Database size: {megabytes(done.bytes_before)} before, {megabytes(done.bytes_after)} now")
    result = {**asdict(done), "threads": list(map(asdict, done.threads))}
    print_result(result, map(escape, lines), as_json=as_json)
