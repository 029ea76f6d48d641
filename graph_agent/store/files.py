"""Private files and folders: created closed to everyone else whatever the umask; existing ones are left alone."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, fcntl, flock
from pathlib import Path

from graph_agent.config.paths import odd_kind
from graph_agent.config.private import make_private_folder
from graph_agent.store.migrations import APPLICATION_ID

if sys.platform == "darwin":
    from fcntl import F_FULLFSYNC

__all__ = [
    "create_private_file",
    "exclusive",
    "file_identity",
    "is_ours",
    "make_private_folder",
    "open_private_file",
    "sync",
    "sync_file",
    "sync_folder",
]

_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100


def open_private_file(path: Path) -> int:
    """Open a file for reading and writing, created 0600 where missing; children do not inherit the descriptor."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def create_private_file(path: Path) -> None:
    """Create an empty file where none stands, and make its name survive a power failure."""
    if not path.exists():
        os.close(open_private_file(path))
        sync_folder(path.parent)


def file_identity(path: Path) -> tuple[int, int] | None:
    """What tells a file from another one that takes its name; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def is_ours(path: Path) -> bool:
    """Whether a file says of itself, in its raw header, that it is a database of this program."""
    try:
        if odd_kind(path):
            return False
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except OSError:
        return False
    return header.startswith(_MAGIC) and header[68:72] == APPLICATION_ID.to_bytes(4, "big")


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
def exclusive(path: Path) -> Iterator[None]:
    """Hold the kernel's lock on a file; waits for other processes. The file is never unlinked."""
    descriptor = open_private_file(path)
    try:
        flock(descriptor, LOCK_EX)
        yield
    finally:
        os.close(descriptor)
