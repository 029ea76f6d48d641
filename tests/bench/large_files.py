"""Tools on large files: a range of one of a gigabyte, an edit in one of ten megabytes."""

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.bench.figures import Figure, Row, Spread
from tests.bench.ground import Ground
from tests.bench.timing import PYTHON, pairs, seconds
from tests.peak import peak_mb
from tools.file_ops.edit_file import EditFileTool
from tools.file_ops.read_file import ReadFileTool

__all__ = ["ROWS"]

_MIB = 1024 * 1024
_BLOCK = b"".join(b"a line of a very large file, the end of which nobody sees %07d\n" % at for at in range(16_384))
_EARLY = (1_000, 200)
_EDITED = 10_000_000


def _read_range(ground: Ground) -> Iterator[Figure]:
    large, small = ground.fresh("read") / "large.txt", ground.fresh("read") / "small.txt"
    _write(large, (128 if ground.quick else 1024) * _MIB)
    _write(small, 32 * _MIB)
    memory = [_memory_mb(large, offset) for offset in (1_000, 1_900_000 if ground.quick else 12_000_000)]
    yield Figure("read_file of ranges in 1 GB, memory over idle", Spread.of(memory), "MB", 32)
    ours, reference = pairs(lambda: _read_s(large), lambda: _read_s(small), ground.runs)
    yield Figure("read_file of early lines in 1 GB", ours, "s", 1.5, reference, "the same in 32 MB")


def _write(path: Path, size: int) -> None:
    with path.open("wb") as file:
        for _ in range(size // len(_BLOCK)):
            file.write(_BLOCK)


def _read_s(path: Path) -> float:
    tool = ReadFileTool(workspace=path.parent)
    return seconds(lambda: asyncio.run(tool.execute(file_path=path.name, offset=_EARLY[0], limit=_EARLY[1])))


def _memory_mb(path: Path, offset: int) -> float:
    """How much more a process needs at most that reads from there than one that reads a small file alone."""
    return _peak_mb(path, offset) - _peak_mb(Path(__file__), 1)


def _peak_mb(path: Path, offset: int) -> float:
    command = [PYTHON, "-m", "tests.bench.large_files", str(path), str(offset)]
    code, most = peak_mb(command, env=os.environ, folder=Path.cwd())
    if code:
        raise RuntimeError(f"{path.name} was not read from line {offset}")
    return most


def _edit(ground: Ground) -> Iterator[Figure]:
    path = ground.fresh("edit") / "file.txt"
    lines = "".join(
        f"line {number} of a file that is edited, with a few words on it\n" for number in range(200_000)
    )
    path.write_text(lines[:_EDITED], encoding="utf-8")
    turns = iter(range(10_000))
    ours, reference = pairs(lambda: _edit_s(path, next(turns)), lambda: _copy_s(path), ground.runs)
    yield Figure("edit_file on 10 MB", ours, "s", 5, reference, "reading and writing it, synced")


def _edit_s(path: Path, turn: int) -> float:
    tool = EditFileTool(workspace=path.parent)
    old, new = (f"line 100000 of a {'file' if (turn + step) % 2 == 0 else 'book'} that" for step in (0, 1))
    return seconds(lambda: asyncio.run(tool.execute(file_path=path.name, old_string=old, new_string=new)))


def _copy_s(path: Path) -> float:
    def copy() -> None:
        content = path.read_bytes()
        with path.with_name("copy.txt").open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    return seconds(copy)


def _read(path: Path, offset: int) -> None:
    read = asyncio.run(ReadFileTool(workspace=path.parent).execute(file_path=path.name, offset=offset, limit=200))
    if read.error:
        raise RuntimeError(read.output)


ROWS = (Row("read-range", _read_range), Row("edit", _edit))

if __name__ == "__main__":
    _read(Path(sys.argv[1]), int(sys.argv[2]))
