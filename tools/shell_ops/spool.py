"""The private file a command writes to, and the look at its end while it grows."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.shell_ops.output import clean, incomplete_end

__all__ = ["Spool", "code_file", "complete_end", "open_spool", "to_read", "told_code"]

_CODE_FILE = ".code"
"""Ending of the name of the file beside the spool of a background command that takes its exit code."""

_PIECE_BYTES = 64 * 1024


class Spool:
    """An open spool; `sink` is what the command writes to."""

    def __init__(self, sink: int, source: int) -> None:
        self.sink = sink
        self._source = source
        self._position = 0

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return os.fstat(self._source).st_size

    def follow(self, tell: Callable[[str], None]) -> None:
        """Tell what has come since the last time; only the end of what came in a flood."""
        size = self.size
        if size <= self._position:
            return
        start = max(self._position, size - _PIECE_BYTES)
        piece = os.pread(self._source, size - start, start)
        kept = len(piece) - incomplete_end(piece)
        self._position = start + kept
        if text := clean(piece[:kept]):
            tell(text)

    def cut(self, size: int) -> None:
        """Give back what lies behind this size."""
        os.ftruncate(self.sink, size)

    def read(self, start: int = 0, count: int | None = None) -> bytes:
        """Bytes of the spool, to its end unless a count is given."""
        wanted = self.size - start if count is None else count
        parts = []
        while wanted > 0 and (part := os.pread(self._source, wanted, start)):
            parts.append(part)
            start += len(part)
            wanted -= len(part)
        return b"".join(parts)


def complete_end(path: Path, start: int) -> int:
    """Up to where the file can be read from here without cutting a character in two."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            return max(start, size - incomplete_end(os.pread(file.fileno(), 4, max(start, size - 4))))
    except FileNotFoundError:
        return start


def code_file(spool: Path) -> Path:
    """Where the shell of a background command writes its exit code."""
    return spool.with_name(f"{spool.name}{_CODE_FILE}")


def told_code(spool: Path) -> int | None:
    """The exit code that the shell wrote down; None where it could not."""
    try:
        text = code_file(spool).read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


@contextmanager
def to_read(path: Path) -> Iterator[Spool]:
    """The spool of a command that somebody else keeps.

    Raises:
        FileNotFoundError: it is gone.
    """
    source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield Spool(source, source)
    finally:
        os.close(source)


@contextmanager
def open_spool(path: Path | None) -> Iterator[Spool]:
    """The spool at a path, or one without a name that goes with the process."""
    if path is None:
        sink, name = tempfile.mkstemp(prefix="graph-agent-")
        source = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
        Path(name).unlink()
        os.set_blocking(sink, True)
    else:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        sink = os.open(path, flags, 0o600)
        source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield Spool(sink, source)
    finally:
        os.close(sink)
        os.close(source)
