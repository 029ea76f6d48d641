"""Who but the owner can read what the agent keeps: the database, what lies beside it, and folders of its own."""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from graph_agent.config.paths import blob_dir, lock_dir
from graph_agent.store.files import is_ours

__all__ = ["exposed_files", "strangers_files", "tighten"]

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def exposed_files(path: Path, folders: Iterable[Path] = ()) -> list[Path]:
    """Of the database, of what belongs to it and of the folders, what is yours and others may read."""
    return [
        one
        for one, status in _kept(path, folders)
        if stat.S_IMODE(status.st_mode) & _OTHERS and status.st_uid == os.geteuid()
    ]


def strangers_files(path: Path, folders: Iterable[Path] = ()) -> list[Path]:
    """Of the same, what belongs to another user: it cannot be closed, and may not be writable either."""
    return [one for one, status in _kept(path, folders) if status.st_uid != os.geteuid()]


def tighten(files: Iterable[Path]) -> list[Path]:
    """Take the rights of all others off; which ones that could not be done for."""
    left = []
    for one in files:
        try:
            one.chmod(stat.S_IMODE(one.lstat().st_mode) & ~_OTHERS)
        except OSError:
            left.append(one)
    return left


def _kept(path: Path, folders: Iterable[Path]) -> Iterator[tuple[Path, os.stat_result]]:
    for one in dict.fromkeys(_named(path, folders)):
        try:
            status = one.lstat()
        except OSError:
            continue
        # What a link leads to belongs to somebody else, and so does a folder or a pipe in the database's place.
        if stat.S_ISREG(status.st_mode) or (stat.S_ISDIR(status.st_mode) and one != path):
            yield one, status


def _named(path: Path, folders: Iterable[Path]) -> Iterator[Path]:
    if is_ours(path):
        yield from (path.with_name(f"{path.name}{end}") for end in ("", "-wal", "-shm"))
    for copies in ("*backup", "damaged-*", "*draft"):
        yield from sorted(path.parent.glob(f"{path.name}.{copies}"))
    for folder in (blob_dir(path), lock_dir(path), *folders):
        yield folder
        for where, names, files in os.walk(folder):
            yield from (Path(where) / name for name in (*names, *files))
