"""The `memory` commands: the user's CONTEXT.md, and the lines in it that the agent noted."""

import os
import subprocess
import sys
from collections.abc import Collection, Iterator
from dataclasses import asdict
from typing import Any

from graph_agent.app.chat_input import editor_words
from graph_agent.app.instructions import Memory, MemoryNote, parse_memory, remove_memory_note
from graph_agent.cli.views.table import command_hint, print_result
from graph_agent.config.paths import make_private_folder, memory_file, read_plain_text
from graph_agent.errors import StorageError, UnknownId, UsageError
from graph_agent.wording import escape

__all__ = ["edit_memory", "remove_note", "show_memory"]

_MAX_DIGITS = 9


def show_memory(*, as_json: bool) -> None:
    """Print what the user wrote, and what the agent noted, each line with its number, date and folder.

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
    memory = parse_memory(text or "")
    notes = [_as_json(number, note) for number, note in enumerate(memory.notes, 1)]
    value = {"path": str(path), "exists": text is not None, "text": text or "", "user": memory.user, "notes": notes}
    print_result(value, _memory_lines(memory) if text else hint, as_json=as_json)
    if text and not as_json:
        sys.stderr.write(f"{escape(str(path))}\n")


def _memory_lines(memory: Memory) -> Iterator[str]:
    if memory.user:
        yield escape(memory.user, multiline=True)
    if not memory.notes:
        return
    if memory.user:
        yield ""
    remove = command_hint("memory forget NUMBER", "/memory forget NUMBER")
    yield f"Noted by the agent (remove a line: {remove}):"
    for number, note in enumerate(memory.notes, 1):
        yield f"{number:>3}  {escape(_format_note(note))}"


def _format_note(note: MemoryNote) -> str:
    origin = f"{note.date}, {note.folder}" if note.date else "date and folder unknown"
    return f"{note.fact}  ({origin})"


def _as_json(number: int, note: MemoryNote) -> dict[str, Any]:
    return {"number": number, **asdict(note)}


def remove_note(
    number: str | None = None, *, threads: Collection[str] | None = None, as_json: bool = False
) -> None:
    """Remove a line that the agent noted, the newest one without a number, and print it.

    Raises:
        UsageError: that is no number, or there is no such line.
        StorageError: the file cannot be changed.
    """
    if number is not None and not (number.isascii() and number.isdigit() and len(number) < _MAX_DIGITS):
        raise UsageError(f"{number!r} is not the number of a line. List them with: graph-agent memory show")
    path = memory_file(os.environ)
    note = remove_memory_note(path, number=int(number) if number is not None else None, threads=threads)
    if note is None:
        what = f"no line {number}" if number else "nothing" if threads is None else "nothing in this conversation"
        raise UnknownId(f"The agent noted {what}. List what it noted with: graph-agent memory show")
    print_result({"removed": asdict(note)}, f"Removed: {_format_note(note)}", as_json=as_json)


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
