"""`threads export` and `threads import`: where a file goes, and what came out of one.

What is told of a prune, and the amounts it is ordered with.
"""

import os
import re
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from graph_agent.app.thread_files import exported
from graph_agent.app.toolset import known_secrets
from graph_agent.cli.export.html import html_page
from graph_agent.cli.export.markdown import markdown_page
from graph_agent.cli.export.transcript import read_transcript
from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.graph import graph_picture
from graph_agent.cli.views.table import print_json, print_lines
from graph_agent.cli.views.threads import thread_json
from graph_agent.config.paths import special_file_kind
from graph_agent.errors import UsageError

if TYPE_CHECKING:
    from graph_agent.app.thread_import import Imported
    from graph_agent.app.threads import Pruned


__all__ = ["export_thread", "parse_age", "parse_size", "print_imported", "print_pruned"]

_BY_SUFFIX = {".md": "md", ".markdown": "md", ".html": "html", ".htm": "html"}


def export_thread(database: Path, text: str, here: str | None, form: str | None, output: str) -> None:
    """Write the thread that the text names in a form; where none is named, in the one that the file's name says.

    Raises:
        UsageError: the file cannot be written, or the thread not exported now.
    """
    form = form or _BY_SUFFIX.get(Path(output).suffix.lower(), "json")
    if form == "json":
        with exported(database, text, here) as lines:
            _write_out(lines, output)
        return
    told = read_transcript(database, text, here, known_secrets(os.environ))
    if form == "md":
        _write_out(markdown_page(told), output)
    else:
        _write_out(html_page(told, graph_picture(database, told.thread.thread_id)), output)


def _write_out(lines: Iterable[str], output: str) -> None:
    """Write to a file, which is there whole or not at all and for nobody else to read, or with `-` to stdout."""
    if output == "-":
        sys.stdout.writelines(f"{line}\n" for line in lines)
        return
    try:
        # Where a link leads is what is written: the link stays.
        path = Path(os.path.realpath(output))
        if kind := special_file_kind(path):
            raise UsageError(f"--output {output!r} is {kind}, not a file; - is stdout")
        _write_whole(lines, path)
    except OSError as error:
        raise UsageError(f"--output {output!r} cannot be written: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"--output {output!r} is no name of a file: {error}") from error
    print_lines([f"wrote {escape(output)}"])


def _write_whole(lines: Iterable[str], path: Path) -> None:
    # A temporary file is its owner's alone: what was said and done may be nobody else's business.
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


def print_imported(done: "Imported", *, as_json: bool) -> None:
    """Tell what the thread is called here and how to go on with it."""
    thread = done.thread
    if as_json:
        told = {"exported_as": done.exported_as, "missing_contents": done.missing}
        print_json({**thread_json(thread), **told})
        return
    renamed = "" if thread.thread_id == done.exported_as else f" (it was {done.exported_as})"
    turns = f"{thread.turns} turn{'s' * (thread.turns != 1)}"
    lines = [f"imported: {thread.thread_id}{renamed}  {turns}, {thread.status}  {thread.title}"]
    lines.append(f"it works in {thread.workspace}; another folder is given with resume --workspace DIR")
    if done.missing:
        lines.append(f"{done.missing} contents of files were gone already where it comes from")
    if thread.status != "idle":
        lines.append("its open calls are judged and asked about anew; no answer comes along")
    lines.append(f"go on with: graph-agent resume {thread.thread_id}")
    print_lines(escape(line) for line in lines)


_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_BYTES = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}


def parse_age(text: str) -> timedelta:
    """A time such as `30d`, `12h` or `2w`.

    Raises:
        UsageError: it is no such time.
    """
    found = re.fullmatch(r"(\d{1,6})\s*([smhdw])", text.strip().lower())
    if found is None:
        raise UsageError(f"--older-than {text!r} is no age; give one such as 12h, 30d or 2w")
    return timedelta(seconds=int(found[1]) * _SECONDS[found[2]])


def parse_size(text: str) -> int:
    """A size such as `500MB`, `2G` or `1000000`, in bytes.

    Raises:
        UsageError: it is no such size.
    """
    found = re.fullmatch(r"(\d{1,15})\s*([kmgt]?)b?", text.strip().lower())
    if found is None:
        raise UsageError(f"--max-size {text!r} is no size; give one such as 500MB or 2G")
    return int(found[1]) * _BYTES[found[2]]


def print_pruned(done: "Pruned", *, as_json: bool) -> None:
    """Print what went and what the file has now."""
    if as_json:
        print_json({**asdict(done), "threads": [asdict(one) for one in done.threads]})
        return
    lines = [
        f"{one.thread_id}: {one.checkpoints} checkpoints and {one.snapshots} snapshots went"
        for one in done.threads
        if one.checkpoints or one.snapshots
    ]
    lines += [f"left alone: {one.held_by}" for one in done.threads if one.held_by]
    if done.collected.files:
        lines.append(f"{done.collected.files} files that nothing named any more went: {_mb(done.collected.bytes)}")
    lines.append(f"the database had {_mb(done.bytes_before)} and has {_mb(done.bytes_after)} now")
    print_lines(escape(line) for line in lines)


def _mb(count: int) -> str:
    return f"{count / 1e6:.1f} MB"
