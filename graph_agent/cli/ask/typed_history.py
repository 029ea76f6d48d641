"""What was typed at the prompt, kept in a file for later chats. No fault of that file stops a chat.

Whatever is no plain file is neither read nor written, as a pipe would be waited for and a device read without end.
"""

import os
import stat
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from prompt_toolkit.history import History

__all__ = ["TypedHistory"]

_READ_BYTES = 2 * 1024 * 1024
"""So much of the file's end is read: years of typing, or two large pastes."""


class TypedHistory(History):
    """The file, in the form that prompt_toolkit writes: a comment with the time, then each line behind a plus."""

    def __init__(self, path: Path) -> None:
        self._path = path
        super().__init__()

    def load_history_strings(self) -> Iterable[str]:
        """What can be read of it, the newest first."""
        entries: list[list[str]] = [[]]
        for line in self._end().split(b"\n"):
            if line.startswith(b"+"):
                entries[-1].append(line[1:].decode("utf-8", "replace"))
            elif entries[-1]:
                entries.append([])
        return ["\n".join(lines) for lines in reversed(entries) if lines]

    def store_string(self, string: str) -> None:
        """Append it, in one write, where the file lets itself be written."""
        lines = "".join(f"+{line}\n" for line in string.split("\n"))
        entry = f"\n# {datetime.now().astimezone()}\n{lines}".encode(errors="replace")
        try:
            descriptor = self._opened(os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            with os.fdopen(descriptor, "ab", buffering=0) as file:
                file.write(entry)
        except OSError:
            return

    def _end(self) -> bytes:
        try:
            with os.fdopen(self._opened(os.O_RDONLY), "rb") as file:
                beyond = os.fstat(file.fileno()).st_size - _READ_BYTES
                file.seek(max(beyond, 0))
                data = file.read(_READ_BYTES)
        except OSError:
            return b""
        # The first entry may have lost its beginning.
        return data.partition(b"\n\n")[2] if beyond > 0 else data

    def _opened(self, flags: int) -> int:
        """A descriptor of the plain file; never waits."""
        descriptor = os.open(self._path, flags | os.O_NONBLOCK, 0o600)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(f"{self._path} is no plain file")
        return descriptor
