"""Keeps protected names from coming to be where they are absent, and leaves no trace of how.

A name is closed by something empty that stands in its place while commands run: for a file an unreadable socket,
which version control and archives pass over; for a folder an empty one that cannot be written. It is taken away
again when the last command in the folder has ended. What a process that died left standing is recognised and taken
away later.
"""

import contextlib
import fcntl
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.sandbox.looking import is_folder
from tools.sandbox.repository import TRIPWIRES
from tools.sandbox.terms import Names

__all__ = ["Tripwire", "closed", "put_back", "swept", "tripwires"]

_SOCKET = stat.S_IFSOCK
_FOLDER = stat.S_IFDIR | 0o555
_READ_BY_GIT = ".gitattributes"
"""Git complains of a socket here and takes an empty folder for nothing."""


@contextmanager
def closed(roots: Sequence[Path], names: Names) -> Iterator[list[Path]]:
    """The placeholders that stand while the block runs, in each of the folders that are there."""
    with ExitStack() as held:
        placed = []
        for root in roots:
            if is_folder(root):
                held.enter_context(_held(root, names))
                placed += _place(root, names)
        yield placed


def swept(root: Path, names: Names) -> None:
    """Take away what a process that died has left, unless others still need it."""
    with contextlib.suppress(OSError), _held(root, names):
        pass


@contextmanager
def _held(root: Path, names: Names) -> Iterator[None]:
    """Others who run commands in the folder are known by their lock on it; the last one tidies up."""
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_SH)
        yield
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _tidy(root, names)
    finally:
        os.close(handle)


def _place(root: Path, names: Names) -> list[Path]:
    wanted = [(root / name, _FOLDER) for name in names.folders]
    wanted += [(root / name, _FOLDER if name == _READ_BY_GIT else _SOCKET) for name in names.files]
    placed = []
    for path, mode in wanted:
        # Where it cannot be made, the command could not make it either; or the file system has no such thing.
        with contextlib.suppress(OSError):
            if not _is_placeholder(path, mode):
                _make(path, mode)
            placed.append(path)
    return placed


def _make(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        path.mkdir(mode=0o755)
        path.chmod(0o555)
    else:
        os.mknod(path, mode)


def _tidy(root: Path, names: Names) -> None:
    for name in (*names.folders, *names.files):
        path = root / name
        with contextlib.suppress(OSError):
            if _is_placeholder(path, _FOLDER):
                path.rmdir()
            elif _is_placeholder(path, _SOCKET):
                path.unlink()


def _is_placeholder(path: Path, mode: int) -> bool:
    """Whether it is one of ours: nobody else makes an unreadable socket, or an empty folder closed to its owner."""
    try:
        found = path.lstat()
        is_ours = found.st_mode == mode and found.st_uid == os.geteuid()
        return is_ours and (mode != _FOLDER or not any(path.iterdir()))
    except OSError:
        return False


@dataclass(frozen=True)
class Tripwire:
    """A name nothing can be mounted on, looked at before and after."""

    path: Path
    target: str | None
    """Of a link, where it leads; None: it is absent."""

    def was_torn(self) -> bool:
        """Whether it is not as it was."""
        return _link(self.path) != self.target if self.target is not None else os.path.lexists(self.path)


def tripwires(roots: Sequence[Path], names: Names, folders: Sequence[Path]) -> list[Tripwire]:
    """Links under protected names at the top of each root, and what is absent there and in repositories."""
    tops = [root / name for root in roots for name in (*names.folders, *names.files, *names.others)]
    links = [Tripwire(path, target) for path in tops if (target := _link(path)) is not None]
    looked_at = [root / name for root in roots for name in names.others]
    looked_at += [folder / name for folder in folders for name in TRIPWIRES]
    return [*links, *(Tripwire(path, None) for path in looked_at if not os.path.lexists(path))]


def put_back(wires: Sequence[Tripwire]) -> tuple[Path, ...]:
    """Make everything as it was once the command and all its processes have ended; returns what was not."""
    torn = [wire for wire in wires if wire.was_torn()]
    for wire in torn:
        with contextlib.suppress(OSError):
            _remove(wire.path)
            if wire.target is not None:
                wire.path.symlink_to(wire.target)
    return tuple(wire.path for wire in torn)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _link(path: Path) -> str | None:
    try:
        return os.readlink(path)  # noqa: PTH115 - text in, text out
    except OSError:
        return None
