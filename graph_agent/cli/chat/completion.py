"""Completion in the chat: slash commands and their arguments, files after an @, and the history of what was typed.

Completion runs in a thread of its own, so that no key waits for a disk. What cannot be read completes nothing.
"""

import contextlib
import importlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import History

from graph_agent.cli.chat.command_table import COMMANDS, MODES
from graph_agent.cli.render.themes import ThemeName
from graph_agent.errors import AgentError
from graph_agent.wording import escape, fuzzy_pattern

if TYPE_CHECKING:
    from graph_agent.app.chat_input import FileNames
    from graph_agent.events import Event


__all__ = ["ChatCompleter", "TypedHistory"]

_MENTION = re.compile(r"(?:^|(?<=[\s(\[{]))@(?:\"([^\"\n]*)|([^\s\"]*))$")
_SOURCES = {"resume": "thread", "model": "model", "tools": "tools name", "revoke": "grant"}
"""Slash command to the source of values that completes the same argument on the command line."""
_THEMES: dict[ThemeName, str] = {
    "auto": "by the background of the terminal",
    "dark": "for dark backgrounds",
    "light": "for light backgrounds",
    "high-contrast": "contrast of at least 7:1",
}
_MOST_CHECKPOINTS = 50
_READ_BYTES = 2 * 1024 * 1024
"""So much of the end of the history file is read: years of typing, or two large pastes."""


class ChatCompleter(Completer):
    """Completes for one workspace and database, and for the thread that the session's events name."""

    def __init__(self, workspace: Path, database: Path) -> None:
        self._workspace = workspace
        self._database = database
        self._thread_id = ""
        self._names: FileNames | None = None

    def __call__(self, number: int, event: "Event") -> None:  # noqa: ARG002 - the shape of a subscriber
        """Take in one event."""
        from graph_agent.events import SessionOpened  # the prompt need not wait for it

        if isinstance(event, SessionOpened):
            self._thread_id = event.thread_id
            if Path(event.workspace) != self._workspace:
                self._workspace, self._names = Path(event.workspace), None

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002 - prompt_toolkit's
        """See prompt_toolkit."""
        text = document.text_before_cursor
        with contextlib.suppress(AgentError, OSError, ValueError):
            if (named := _MENTION.search(text)) is not None:
                yield from self._files(named)
            elif text.startswith("/") and "\n" not in text:
                command, blank, typed = text[1:].partition(" ")
                typed = typed.lstrip()
                if command == "policy" and blank:
                    command, _, typed = typed.partition(" ")
                    command = command if command == "revoke" else ""
                candidates = self._values(command, typed) if blank else self._commands()
                written = typed if blank else text
                pattern = fuzzy_pattern(written)
                matching = [one for one in candidates if pattern.match(one[0])]
                # What begins with it comes first; the others in their order.
                for value, shown, about in sorted(matching, key=lambda one: not one[0].startswith(written)):
                    yield Completion(value, -len(written), display=escape(shown), display_meta=escape(about))

    def _files(self, named: re.Match[str]) -> Iterator[Completion]:
        typed = named[2] if named[1] is None else named[1]
        if self._names is None:
            self._names = importlib.import_module("graph_agent.app.chat_input").FileNames(self._workspace)
        for name in self._names.like(typed):
            if name.isprintable() and '"' not in name:
                written = f'@"{name}' + ("" if name.endswith("/") else '"') if " " in name else f"@{name}"
                yield Completion(written, start_position=-len(named[0]), display=name)

    def _commands(self) -> Iterator[tuple[str, str, str]]:
        """What is written, shown and said about each command; built-in ones first: they need no files."""
        # Without their arguments, which `/help` shows, the descriptions fit beside them at 60 columns.
        yield from ((f"/{name}", f"/{name}", command.does) for name, command in COMMANDS.items())
        own = importlib.import_module("graph_agent.app.chat_input").user_commands(self._workspace).known
        yield from ((f"/{name}", f"/{name}", command.does) for name, command in own.items() if name not in COMMANDS)

    def _values(self, command: str, typed: str) -> Iterator[tuple[str, str, str]]:
        """The same of each value of the command's argument."""
        if command == "mode":
            yield from ((mode, mode, does) for mode, does in MODES.items())
        elif command == "theme":
            yield from ((theme, theme, use) for theme, use in _THEMES.items())
        elif command in ("rewind", "fork") and self._thread_id:
            opener: Any = importlib.import_module("graph_agent.app.reader")
            with opener.read_database(self._database) as reader:
                entries = reader.history(self._thread_id)[:_MOST_CHECKPOINTS]
            for entry in entries:
                about = f"{entry.created_at} {entry.node or entry.source} {', '.join(entry.changed)}"
                yield entry.checkpoint_id, entry.checkpoint_id, about
        elif command in _SOURCES:
            sources: Any = importlib.import_module("graph_agent.cli.completion").SOURCES
            for item in sources[_SOURCES[command]](self._database, typed):
                yield item.value, item.value, item.help or ""


class TypedHistory(History):
    """The history file, in the format of prompt_toolkit's FileHistory; no fault of the file stops a chat.

    Anything but a plain file is neither read nor written: a pipe would block, a device never ends.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        super().__init__()

    def load_history_strings(self) -> Iterable[str]:
        """What can be read of it, the newest first."""
        try:
            with os.fdopen(self._open(os.O_RDONLY), "rb") as file:
                skipped = os.fstat(file.fileno()).st_size - _READ_BYTES
                file.seek(max(skipped, 0))
                data = file.read(_READ_BYTES)
        except OSError:
            return []
        if skipped > 0:  # The first entry may have lost its beginning.
            data = data.partition(b"\n\n")[2]
        entries: list[list[str]] = [[]]
        for line in data.split(b"\n"):
            if line.startswith(b"+"):
                entries[-1].append(line[1:].decode("utf-8", "replace"))
            elif entries[-1]:
                entries.append([])
        return ["\n".join(lines) for lines in reversed(entries) if lines]

    def store_string(self, string: str) -> None:
        """Append it in one write, if the file can be written."""
        lines = "".join(f"+{line}\n" for line in string.split("\n"))
        entry = f"\n# {datetime.now().astimezone()}\n{lines}".encode(errors="replace")
        with contextlib.suppress(OSError):
            descriptor = self._open(os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            with os.fdopen(descriptor, "ab", buffering=0) as file:
                file.write(entry)

    def _open(self, flags: int) -> int:
        """A descriptor of the plain file; never waits."""
        descriptor = os.open(self._path, flags | os.O_NONBLOCK, 0o600)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(f"{self._path} is not a plain file")
        return descriptor
