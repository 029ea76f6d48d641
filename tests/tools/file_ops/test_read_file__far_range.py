import os
import threading
from pathlib import Path

import pytest

from tools.base import Limits
from tools.file_ops.read_file import FarLines, far_lines


def _far(path: Path, first: int, count: int, limits: Limits | None = None, *, cancelled: bool = False) -> FarLines:
    cancellation = threading.Event()
    if cancelled:
        cancellation.set()
    fd = os.open(path, os.O_RDONLY)
    try:
        return far_lines(fd, first, count, limits or Limits(), cancellation)
    finally:
        os.close(fd)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    # A line break exactly at the edge of what is read at once, and a last line without one.
    (tmp_path / "f").write_bytes(b"x" * (1024 * 1024 - 1) + b"\nsecond\r\n" + b"y" * (1024 * 1024) + b"\nlast")
    return tmp_path / "f"


def test_lines_are_found_across_the_pieces(path: Path) -> None:
    assert _far(path, 2, 1) == FarLines(["second"])
    assert _far(path, 4, 5) == FarLines(["last"])
    assert _far(path, 5, 5) == FarLines([])


def test_long_lines_are_kept_only_up_to_a_bound(path: Path) -> None:
    found = _far(path, 1, 3, Limits(line_chars=10))

    assert [len(line) for line in found.lines] == [44, 6, 44]


def test_the_bound_on_scanned_bytes_is_told(path: Path) -> None:
    assert _far(path, 4, 1, Limits(scan_bytes=1024 * 1024)) == FarLines([], gave_up=True)


def test_a_cancellation_ends_the_scan(path: Path) -> None:
    assert _far(path, 4, 1, cancelled=True) == FarLines([])
