"""A range of lines from a file too large to be taken in whole; memory stays bounded whatever the file holds."""

import os
from dataclasses import dataclass, field
from threading import Event

from tools.context import Limits

__all__ = ["FarLines", "far_lines"]

_CHUNK = 1024 * 1024


@dataclass
class FarLines:
    """The lines found."""

    lines: list[str] = field(default_factory=list)
    gave_up: bool = False
    """The bound on scanned bytes was reached first."""


class _Collector:
    """Takes a file's bytes in order and keeps the wanted lines, each up to a bound."""

    def __init__(self, first: int, count: int, kept_bytes: int) -> None:
        self.lines: list[bytes] = []
        self._number = 1
        self._first = first
        self._count = count
        self._kept_bytes = kept_bytes
        self._open = bytearray()

    @property
    def is_full(self) -> bool:
        return len(self.lines) == self._count

    def feed(self, chunk: bytes) -> None:
        position = 0
        while not self.is_full:
            end = chunk.find(b"\n", position)
            self._keep(chunk[position : end if end >= 0 else len(chunk)])
            if end < 0:
                return
            self.close_line()
            position = end + 1

    def close_line(self) -> None:
        if self._number >= self._first and not self.is_full:
            self.lines.append(bytes(self._open))
        self._open.clear()
        self._number += 1

    def finish(self) -> None:
        if self._open:
            self.close_line()

    def _keep(self, piece: bytes) -> None:
        if self._number >= self._first:
            self._open += piece[: max(0, self._kept_bytes - len(self._open))]


def far_lines(fd: int, first: int, count: int, limits: Limits, cancellation: Event) -> FarLines:
    """Lines `first` to `first + count - 1`, each cut a little above what is shown of a line."""
    collector = _Collector(first, min(count, limits.read_lines), limits.line_chars * 4 + 4)
    scanned = 0
    while not collector.is_full and not cancellation.is_set():
        chunk = os.read(fd, _CHUNK)
        if not chunk:
            collector.finish()
            break
        collector.feed(chunk)
        scanned += len(chunk)
        if scanned >= limits.scan_bytes:
            break
    gave_up = scanned >= limits.scan_bytes and not collector.is_full
    return FarLines([line.decode("utf-8", "replace").rstrip("\r") for line in collector.lines], gave_up)
