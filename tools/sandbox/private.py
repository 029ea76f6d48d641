"""A thread's own folder for temporary files: the same for all its commands, and seen by nobody else's.

It outlives the process, so that a command after a resume finds what one before it left, and goes when it is old.
"""

import contextlib
import os
import shutil
import stat
import tempfile
import time
from hashlib import sha256
from pathlib import Path

__all__ = ["empty_file", "private_folder"]

_KEPT_S = 10 * 24 * 3600
_EMPTY = ".empty"


def private_folder(name: str) -> Path:
    """The folder for what goes by this name; it exists."""
    base = _base()
    folder = base / sha256(name.encode("utf-8", "replace")).hexdigest()[:16]
    if not folder.exists():
        _drop_old(base)
        folder.mkdir(mode=0o700, exist_ok=True)
    os.utime(folder)
    return folder


def empty_file() -> Path:
    """A file with nothing in it, shown in place of one that holds a key."""
    path = _base() / _EMPTY
    if not path.exists():
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o444))
    return path


def _base() -> Path:
    """A folder that is this user's alone, whoever else may write beside it."""
    base = Path(tempfile.gettempdir()).resolve() / f"graph-agent-{os.geteuid()}"
    with contextlib.suppress(FileExistsError):
        base.mkdir(mode=0o700)
    found = base.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise PermissionError(f"{base} is not a folder of yours alone (mode 0700); remove it")
    return base


def _drop_old(base: Path) -> None:
    for folder in base.iterdir():
        with contextlib.suppress(OSError):
            if folder.is_dir() and time.time() - folder.stat().st_mtime > _KEPT_S:
                shutil.rmtree(folder, ignore_errors=True)
