"""What a server writes besides the protocol: its standard error, in a file of bounded size, and invalid output."""

import os
from pathlib import Path

__all__ = ["ServerLog"]

_MAX_BYTES = 1024 * 1024
_TAIL_BYTES = 64 * 1024
_MAX_LINE = 200


class ServerLog:
    """The log of one server, started again with each of its runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.invalid_output = ""
        """The beginning of the first thing it sent that is no message of the protocol."""
        self._size = 0

    def begin(self) -> None:
        """Drop the log of the previous run."""
        self.invalid_output = ""
        self._size = 0
        self.path.unlink(missing_ok=True)
        self.path.touch(mode=0o600)

    def write(self, data: bytes) -> None:
        """Append standard error; when the file gets too large, what is older is dropped."""
        if self._size + len(data) > _MAX_BYTES:
            self.path.write_bytes(b"[earlier output was dropped: the log was too large]\n")
            self._size = 0
        with self.path.open("ab") as file:
            file.write(data)
        self._size += len(data)

    def note_invalid_output(self, text: str) -> None:
        """Remember the first line, or error, that came instead of a message."""
        self.invalid_output = self.invalid_output or text.strip()[:_MAX_LINE]

    def last_lines(self, count: int) -> tuple[str, ...]:
        """The end of its standard error."""
        try:
            with self.path.open("rb") as log:
                log.seek(max(log.seek(0, os.SEEK_END) - _TAIL_BYTES, 0))
                lines = log.read().decode("utf-8", "replace").split("\n")
        except OSError:
            return ()
        return tuple([line.strip()[:_MAX_LINE] for line in lines if line.strip()][-count:])
