"""Private files and folders: created closed to other users, checked for it, and replaced atomically."""

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, fcntl, flock
from pathlib import Path

from graph_agent.config.paths import blob_dir, lock_dir, make_private_folder
from graph_agent.storage.sqlite.database_file import is_own_database

__all__ = [
    "create_private_file",
    "draft_file",
    "exclusive_lock",
    "exposed_files",
    "files_of_other_users",
    "make_private_folder",
    "open_private_file",
    "restrict_permissions",
    "sync",
    "sync_file",
    "sync_folder",
]

if sys.platform == "darwin":
    from fcntl import F_FULLFSYNC


def open_private_file(path: Path) -> int:
    """Open a file for reading and writing, created 0600 where missing; children do not inherit the descriptor."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def create_private_file(path: Path) -> None:
    """Create an empty file where there is none, and make its name survive a power failure."""
    if not path.exists():
        os.close(open_private_file(path))
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make new names in the folder durable."""
    sync_file(folder)


def sync_file(path: Path) -> None:
    """Bring the content of a file to the medium itself; of a folder, the names in it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def sync(descriptor: int) -> None:
    """Bring a file's content to the medium itself."""
    if sys.platform == "darwin":
        # There fsync stops at the drive's cache.
        fcntl(descriptor, F_FULLFSYNC)
    else:
        os.fsync(descriptor)


@contextmanager
def exclusive_lock(path: Path) -> Iterator[int]:
    """Hold the kernel's lock on a file; waits for other processes. The file is never unlinked.

    A program that inherits the descriptor holds the lock too, until it ends.
    """
    descriptor = open_private_file(path)
    try:
        flock(descriptor, LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def draft_file(target: Path) -> Iterator[Path]:
    """A private draft of a database beside the target; it takes the target's name, synced, when the block ends.

    A killed process leaves it as `TARGET.….draft`.
    """
    draft = target.with_name(f"{target.name}.{os.urandom(16).hex()}.draft")
    try:
        create_private_file(draft)
        yield draft
        sync_file(draft)
        draft.replace(target)
        sync_folder(target.parent)
    finally:
        for end in ("", "-journal"):
            draft.with_name(f"{draft.name}{end}").unlink(missing_ok=True)


_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def exposed_files(path: Path, folders: Iterable[Path] = ()) -> list[Path]:
    """Files of the database and the folders that belong to you and that others may read."""
    return [
        one
        for one, status in _private_files(path, folders)
        if stat.S_IMODE(status.st_mode) & _OTHERS and status.st_uid == os.geteuid()
    ]


def files_of_other_users(path: Path, folders: Iterable[Path] = ()) -> list[Path]:
    """Those that belong to another user: you cannot restrict them, and may not be able to write them."""
    return [one for one, status in _private_files(path, folders) if status.st_uid != os.geteuid()]


def restrict_permissions(files: Iterable[Path]) -> list[Path]:
    """Take the permissions of other users away; returns the files for which that failed."""
    left = []
    for one in files:
        try:
            one.chmod(stat.S_IMODE(one.lstat().st_mode) & ~_OTHERS)
        except OSError:
            left.append(one)
    return left


def _private_files(path: Path, folders: Iterable[Path]) -> Iterator[tuple[Path, os.stat_result]]:
    """The database with what lies beside it, and everything in the folders; each once, with its status."""
    named = []
    if is_own_database(path):
        named += [path.with_name(f"{path.name}{end}") for end in ("", "-wal", "-shm")]
    for copies in ("*backup", "damaged-*", "*draft"):
        named += sorted(path.parent.glob(f"{path.name}.{copies}"))
    for folder in (blob_dir(path), lock_dir(path), *folders):
        named.append(folder)
        for where, names, files in os.walk(folder):
            named += [Path(where) / name for name in (*names, *files)]
    for one in dict.fromkeys(named):
        try:
            status = one.lstat()
        except OSError:
            continue
        # What a link leads to belongs to somebody else, and so does a folder or a pipe in the database's place.
        if stat.S_ISREG(status.st_mode) or (stat.S_ISDIR(status.st_mode) and one != path):
            yield one, status
