"""Finds the protected names that are there in a writable folder. Looks at names only, a little way down."""

import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from tools.sandbox.places import Mount
from tools.sandbox.repository import repository_mounts
from tools.sandbox.terms import Names

__all__ = ["protected_mounts"]

_DEPTH = 3
"""How many levels of folders are looked through."""
_ENTRIES = 3_000
"""How many names are looked at: it happens before every command."""
_MOUNTS = 100
_SKIPPED = frozenset(("node_modules", ".venv", "venv", "target", "__pycache__", ".tox", ".mypy_cache"))


def protected_mounts(root: Path, names: Names) -> Iterator[Mount]:
    """What of a writable folder is closed because of its name, outermost names first."""
    found = 0
    for path in _protected(root, names):
        for mount in repository_mounts(path) if path.name == ".git" else (Mount(path, "read"),):
            # A link may lead anywhere: outside of the folder nothing can be written as it is.
            if path.name == ".git" or mount.lies_in(root):
                yield mount
                found += 1
        if found >= _MOUNTS:
            return


def _protected(root: Path, names: Names) -> Iterator[Path]:
    folders, seen = deque([(root, 0)]), 0
    while folders and seen < _ENTRIES:
        folder, depth = folders.popleft()
        for entry in _entries(folder):
            seen += 1
            path = folder / entry.name
            if names.is_protected(path.relative_to(root)):
                yield path.resolve() if entry.is_symlink() else path
            elif depth < _DEPTH and entry.name not in _SKIPPED and entry.is_dir(follow_symlinks=False):
                folders.append((path, depth + 1))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []
