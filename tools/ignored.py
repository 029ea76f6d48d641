"""Which entries of a folder listings leave out: hidden ones, and what the repository's ignore files name."""

import os
from collections.abc import Iterable
from pathlib import Path

from pathspec import GitIgnoreSpec

__all__ = ["IgnoreRules", "is_hidden"]

_MAX_BYTES = 1024 * 1024


def is_hidden(name: str) -> bool:
    """Whether a name starts with a dot."""
    return name.startswith(".")


class IgnoreRules:
    """The `.gitignore` files between a root and the folders below it; each is read once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._specs: dict[Path, GitIgnoreSpec] = {}

    def ignores(self, path: Path, *, is_folder: bool) -> bool:
        """Whether the nearest ignore file that speaks about the path ignores it; outside the root none does."""
        if not path.is_relative_to(self._root) or path == self._root:
            return False
        for folder in self._folders_above(path):
            relative = path.relative_to(folder).as_posix() + ("/" if is_folder else "")
            verdict = self._spec(folder).check_file(relative).include
            if verdict is not None:
                return verdict
        return False

    def _folders_above(self, path: Path) -> Iterable[Path]:
        for folder in path.parents:
            yield folder
            if folder == self._root:
                return

    def _spec(self, folder: Path) -> GitIgnoreSpec:
        if folder not in self._specs:
            self._specs[folder] = GitIgnoreSpec.from_lines(_lines(folder / ".gitignore"))
        return self._specs[folder]


def _lines(path: Path) -> list[str]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        return os.read(fd, _MAX_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    finally:
        os.close(fd)
