"""Finds the AGENTS.md files of folders below a project's own: each is about what lies below it.

Looks at names only, a little way down, and reads nothing. What is deeper, hidden, or a repository of its own says
nothing here.
"""

import os
from collections import deque
from pathlib import Path

__all__ = ["NESTED", "is_nested", "nested_instructions"]

NESTED = "AGENTS.md"
"""The name that is looked for."""

_DEPTH = 4
_FOLDERS = 500
_ENTRIES = 20_000
"""How many names are looked at: it happens before the first prompt."""
_MOST = 30
_SKIPPED = frozenset(("node_modules", "vendor", "venv", "target", "build", "dist", "__pycache__", "site-packages"))


def is_nested(name: str) -> bool:
    """Whether a project's file, named from its folder, is one of these."""
    return name.endswith(f"/{NESTED}") and not name.startswith(".")


def nested_instructions(root: Path) -> tuple[str, ...]:
    """Their names from the folder, the nearest to it first; always the same for the same folders."""
    found: list[str] = []
    waiting, looked, seen = deque([("", 0)]), 0, 0
    while waiting and looked < _FOLDERS and seen < _ENTRIES and len(found) < _MOST:
        place, depth = waiting.popleft()
        folders, files, count = _names_in(root / place)
        looked, seen = looked + 1, seen + count
        if place and ".git" in {*folders, *files}:
            continue
        if place and NESTED in files:
            found.append(f"{place}{NESTED}")
        if depth < _DEPTH:
            waiting += [(f"{place}{name}/", depth + 1) for name in sorted(folders) if _may_say_something(name)]
    return tuple(found)


def _may_say_something(name: str) -> bool:
    return not name.startswith(".") and name not in _SKIPPED


def _names_in(folder: Path) -> tuple[list[str], list[str], int]:
    """Folders, other names, and how many there are; nothing where it cannot be read. Links are no folders here."""
    folders: list[str] = []
    files: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                (folders if entry.is_dir(follow_symlinks=False) else files).append(entry.name)
                if len(folders) + len(files) >= _ENTRIES:
                    break
    except OSError:
        return [], [], 0
    return folders, files, len(folders) + len(files)
