"""`memory show` and `memory edit`: the user's context file, read as it is and changed in their own editor."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.table import print_json, print_lines
from graph_agent.config.paths import make_private_folder, memory_file, read_plain_text
from graph_agent.errors import StorageError, UsageError

__all__ = ["edit_memory", "show_memory"]


def show_memory(*, as_json: bool) -> None:
    """Print the file, or that there is none.

    Raises:
        StorageError: it cannot be read.
    """
    path = memory_file(os.environ)
    text = _text(path)
    if as_json:
        print_json({"path": str(path), "exists": text is not None, "text": text or ""})
    elif not text:
        print_lines([f"Nothing is remembered yet. `graph-agent memory edit` opens {escape(str(path))}."])
    else:
        print_lines([escape(text.rstrip("\n"), multiline=True)])
        sys.stderr.write(f"{escape(str(path))}\n")


def edit_memory() -> None:
    """Open the file in the user's editor and wait until that has ended.

    Raises:
        UsageError: no editor can be started.
        StorageError: the file cannot be created, or the editor failed.
    """
    path = memory_file(os.environ)
    _create_privately(path)
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if chosen is None and not sys.stdin.isatty():
        raise UsageError(f"there is no terminal for an editor; set EDITOR to a program, or edit {path} itself")
    command = chosen or "vi"
    try:
        ended = subprocess.run([*shlex.split(command), str(path)], check=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"the editor {command!r} could not be started ({error}); set EDITOR to another") from error
    if ended.returncode:
        raise StorageError(f"the editor {command!r} ended with code {ended.returncode}; look at {path}")


def _text(path: Path) -> str | None:
    try:
        return read_plain_text(path, errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error}; check that it is a file you may read") from error


def _create_privately(path: Path) -> None:
    try:
        make_private_folder(path.parent)
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error}; check who owns it and its folder") from error
