"""What a server says beside the protocol: its standard error, in a file of bounded size, and strays."""

import os
from pathlib import Path

__all__ = ["ServerLog"]

_MOST_BYTES = 1024 * 1024
_LOOKED_AT_BYTES = 64 * 1024
_SHOWN_CHARS = 200


class ServerLog:
    """One server's, begun anew with each of its lives."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stray = ""
        """The beginning of the first thing it sent that is no message of the protocol."""
        self._size = 0

    def begin(self) -> None:
        """Forget the last life."""
        self.stray = ""
        self._size = 0
        self.path.unlink(missing_ok=True)
        self.path.touch(mode=0o600)

    def write(self, data: bytes) -> None:
        """Keep what it wrote on its standard error; of a flood the latest stays."""
        if self._size + len(data) > _MOST_BYTES:
            self.path.write_bytes(b"[what stood here was dropped: there was too much of it]\n")
            self._size = 0
        with self.path.open("ab") as file:
            file.write(data)
        self._size += len(data)

    def note_stray(self, text: str) -> None:
        """Keep the first line, or failure, that came where a message was due."""
        self.stray = self.stray or text.strip()[:_SHOWN_CHARS]

    def last_lines(self, count: int) -> tuple[str, ...]:
        """The end of what it wrote on its standard error."""
        try:
            with self.path.open("rb") as log:
                log.seek(max(log.seek(0, os.SEEK_END) - _LOOKED_AT_BYTES, 0))
                lines = log.read().decode("utf-8", "replace").split("\n")
        except OSError:
            return ()
        return tuple([line.strip()[:_SHOWN_CHARS] for line in lines if line.strip()][-count:])
