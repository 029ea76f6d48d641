"""Which entries of a folder listings leave out: hidden ones, and what the repository's ignore files name."""

import os
from collections.abc import Iterable
from pathlib import Path

from pathspec import GitIgnoreSpec

from tools.suspicion import NONE, Suspicion

__all__ = ["IGNORE_FILE", "IgnoreRules", "is_hidden"]

IGNORE_FILE = ".gitignore"
_MAX_BYTES = 1024 * 1024
_FOLDER = "ps_d"
"""The group of a pattern's expression that found the end of a folder's name."""


def is_hidden(name: str) -> bool:
    """Whether a name starts with a dot."""
    return name.startswith(".")


class IgnoreRules:
    """The `.gitignore` files between a root and the folders below it; each is read once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lines: dict[Path, list[str]] = {}
        self._specs: dict[Path, GitIgnoreSpec] = {}

    def ignores(self, path: Path, *, is_folder: bool) -> bool:
        """Whether the nearest ignore file that speaks about the path ignores it; outside the root none does."""
        if not path.is_relative_to(self._root) or path == self._root:
            return False
        for folder in self._folders_above(path):
            relative = path.relative_to(folder).as_posix() + ("/" if is_folder else "")
            spec = self._spec(folder)
            told = spec.check_file(relative)
            if told.include or (told.index is not None and _is_of(spec, told.index, relative)):
                return bool(told.include)
        return False

    def suspicion(self, folder: Path) -> Suspicion:
        """Which names in a folder `ignores` may be true of, told without asking it for each.

        Holds where no folder above is one that a pattern speaks of and `ignores` nevertheless lets pass.
        """
        if not folder.is_relative_to(self._root):
            return NONE
        above = NONE if folder == self._root else self.suspicion(folder.parent)
        return above.joined_by(self.lines_in(folder))

    def lines_in(self, folder: Path) -> list[str]:
        """The lines of a folder's own ignore file; none where it has none."""
        if folder not in self._lines:
            self._lines[folder] = _lines(folder / IGNORE_FILE)
        return self._lines[folder]

    def _folders_above(self, path: Path) -> Iterable[Path]:
        for folder in path.parents:
            yield folder
            if folder == self._root:
                return

    def _spec(self, folder: Path) -> GitIgnoreSpec:
        if folder not in self._specs:
            self._specs[folder] = GitIgnoreSpec.from_lines(self.lines_in(folder))
        return self._specs[folder]


def _is_of(spec: GitIgnoreSpec, index: int, path: str) -> bool:
    """Whether a pattern speaks of the path, and not just of a folder above it, which would say no more."""
    found = spec.patterns[index].match_file(path)
    return found is None or found.match.groupdict().get(_FOLDER) is None or found.match.end(_FOLDER) == len(path)


def _lines(path: Path) -> list[str]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        return os.read(fd, _MAX_BYTES).decode("utf-8-sig", "replace").replace("\r\n", "\n").split("\n")
    except OSError:
        return []
    finally:
        os.close(fd)
