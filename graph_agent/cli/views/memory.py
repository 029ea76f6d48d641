"""`memory show` and `memory edit`: the user's CONTEXT.md."""

import os
import subprocess
import sys

from graph_agent.app.chat_input import editor_words
from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.table import print_result
from graph_agent.config.paths import make_private_folder, memory_file, read_plain_text
from graph_agent.errors import StorageError, UsageError

__all__ = ["edit_memory", "show_memory"]


def show_memory(*, as_json: bool) -> None:
    """Print the file.

    Raises:
        StorageError: it cannot be read.
    """
    path = memory_file(os.environ)
    try:
        text: str | None = read_plain_text(path, errors="replace")
    except FileNotFoundError:
        text = None
    except OSError as error:
        raise StorageError(f"Cannot read {path}: {error}. Check that it is a file that you may read.") from error
    hint = f"Memory is empty. Edit {path} with: graph-agent memory edit"
    lines = [escape(text.rstrip("\n"), multiline=True)] if text else hint
    print_result({"path": str(path), "exists": text is not None, "text": text or ""}, lines, as_json=as_json)
    if text and not as_json:
        sys.stderr.write(f"{escape(str(path))}\n")


def edit_memory() -> None:
    """Open the file in the user's editor and wait for the editor to exit.

    Raises:
        UsageError: no editor can be started.
        StorageError: the file cannot be created, or the editor failed.
    """
    path = memory_file(os.environ)
    try:
        make_private_folder(path.parent)
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    except OSError as error:
        raise StorageError(f"Cannot write {path}: {error}. Check the owner of the file and its folder.") from error
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if editor is None and not sys.stdin.isatty():
        raise UsageError(f"No terminal for an editor. Set EDITOR, or edit {path} directly.")
    command = editor or "vi"
    try:
        ended = subprocess.run([*editor_words(command), str(path)], check=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"Cannot start the editor {command!r}: {error}. Set EDITOR to another one.") from error
    if ended.returncode:
        raise StorageError(f"The editor {command!r} exited with code {ended.returncode}. Check {path}.")
