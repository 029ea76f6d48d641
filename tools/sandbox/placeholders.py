"""Keeps protected names, and paths that deny rules name, absent while commands run in a sandbox.

An absent file is closed by an unreadable socket, which version control and archives pass over, an absent folder by
an empty one that cannot be written. The last command in the folder removes it. A placeholder that a dead process
left is recognised and removed later. What can have no placeholder is compared before and after a command, and
restored.
"""

import contextlib
import fcntl
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tools.sandbox.protected_paths import WATCHED_NAMES, ProtectedNames, SandboxRules, is_folder

__all__ = ["WatchedPath", "placeholders", "remove_stale_placeholders", "restore", "watched_paths"]

_SOCKET = stat.S_IFSOCK
_FOLDER = stat.S_IFDIR | 0o555
_READ_BY_GIT = ".gitattributes"
"""Git complains about a socket here and ignores an empty folder."""


@contextmanager
def placeholders(rules: SandboxRules) -> Iterator[list[Path]]:
    """Placeholders in each of the writable folders that exist, while the block runs."""
    with ExitStack() as held:
        placed: list[Path] = []
        for root in rules.writable:
            if is_folder(root):
                names = _names_in(root, rules)
                held.enter_context(_lock_folder(root, names))
                placed += _place(root, names)
        yield placed


def remove_stale_placeholders(rules: SandboxRules) -> None:
    """Remove the placeholders that a dead process left, unless other processes still need them."""
    for root in rules.writable:
        with contextlib.suppress(OSError), _lock_folder(root, _names_in(root, rules)):
            pass


def _names_in(root: Path, rules: SandboxRules) -> ProtectedNames:
    """The protected names of a writable folder, and the paths in it that a deny rule names, as relative ones."""
    folders, files = list(rules.names.folders), list(rules.names.files)
    for closed in rules.closed:
        place = Path(closed.folder)
        holders = [one for one in rules.writable if one in place.parents]
        if closed.access == "write" and holders and root == max(holders, key=lambda one: len(one.parts)):
            if closed.names == ("**",):
                folders.append(str(place.relative_to(root)))
            elif not closed.names:
                files.append(str(place.relative_to(root)))
    given = len(rules.names.folders), len(rules.names.files)
    # Where the folder of a name is absent too there is no placeholder.
    removed = (*rules.names.removed, *folders[given[0] :], *files[given[1] :])
    return replace(rules.names, folders=tuple(folders), files=tuple(files), removed=removed)


@contextmanager
def _lock_folder(root: Path, names: ProtectedNames) -> Iterator[None]:
    """Hold a shared lock on the folder; the last of its holders removes the placeholders."""
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_SH)
        yield
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove_placeholders(root, names)
    finally:
        os.close(handle)


def _place(root: Path, names: ProtectedNames) -> list[Path]:
    wanted = [(root / name, _FOLDER) for name in names.folders]
    wanted += [(root / name, _FOLDER if name == _READ_BY_GIT else _SOCKET) for name in names.files]
    placed = []
    for path, mode in wanted:
        # If it cannot be created, the command could not create it either, or the file system has no such thing.
        with contextlib.suppress(OSError):
            if not _is_placeholder(path, mode):
                if mode == _FOLDER:
                    path.mkdir(mode=0o755)
                    path.chmod(0o555)
                else:
                    os.mknod(path, mode)
            placed.append(path)
    return placed


def _remove_placeholders(root: Path, names: ProtectedNames) -> None:
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
class WatchedPath:
    """A path that nothing can be mounted on, compared before and after a command."""

    path: Path
    target: str | None
    """Where it leads, if it is a link; None if it is absent."""

    def has_changed(self) -> bool:
        """Whether it differs from before."""
        return _link_target(self.path) != self.target if self.target is not None else os.path.lexists(self.path)


def watched_paths(rules: SandboxRules, repositories: Sequence[Path]) -> list[WatchedPath]:
    """Links under protected names and on the way to them, and what is absent there and in repositories."""
    roots = rules.writable
    by_root = [(root, _names_in(root, rules)) for root in roots]
    tops = [root / name for root, names in by_root for name in (*names.folders, *names.files, *names.removed)]
    tops += _links_above([*rules.protected, *(Path(one.folder) for one in rules.closed)], roots)
    links = [WatchedPath(path, target) for path in tops if (target := _link_target(path)) is not None]
    watched = [root / name for root, names in by_root for name in names.removed]
    watched += [folder / name for folder in repositories for name in WATCHED_NAMES]
    return [*links, *(WatchedPath(path, None) for path in watched if not os.path.lexists(path))]


def _links_above(folders: Sequence[Path], roots: Sequence[Path]) -> Iterator[Path]:
    """The links in writable folders by which such a folder is reached."""
    for folder in folders:
        for path in (folder, *folder.parents):
            if path.is_symlink() and any(path.is_relative_to(root) for root in roots):
                yield path


def restore(watched: Sequence[WatchedPath]) -> tuple[Path, ...]:
    """Undo all changes after the command and its processes have ended; returns the paths that had changed."""
    changed = [one for one in watched if one.has_changed()]
    for one in changed:
        with contextlib.suppress(OSError):
            if one.path.is_dir() and not one.path.is_symlink():
                shutil.rmtree(one.path, ignore_errors=True)
            else:
                one.path.unlink(missing_ok=True)
            if one.target is not None:
                one.path.symlink_to(one.target)
    return tuple(one.path for one in changed)


def _link_target(path: Path) -> str | None:
    try:
        return os.readlink(path)  # noqa: PTH115 - text in, text out
    except OSError:
        return None
