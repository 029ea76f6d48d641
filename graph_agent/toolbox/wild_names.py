"""The links that names with wild signs in them mean at the moment. Judges nothing, and knows no rule."""

import os
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from pathlib import PurePath

__all__ = ["links_meant"]

_WILD = {"*": ".*", "?": "."}
_MOST_FOLDERS = 500
"""So many are looked into for one rule."""


def links_meant(folder: PurePath, names: Sequence[str]) -> Iterator[PurePath]:
    """Every link among what the names mean, one below the other; none from `**` on: that is the whole tree."""
    names = tuple(takewhile(lambda name: "**" not in name, names))
    waiting = [(folder, 0)] if any(sign in name for name in names for sign in _WILD) else []
    for _ in range(_MOST_FOLDERS):
        if not waiting:
            return
        place, at = waiting.pop(0)
        for entry in _entries(place, names[at]):
            if entry.is_symlink():
                yield place / entry.name
            if at + 1 < len(names) and _is_folder(entry):
                waiting.append((place / entry.name, at + 1))


def _entries(folder: PurePath, name: str) -> list["os.DirEntry[str]"]:
    meant = _compiled(name)
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if meant.fullmatch(entry.name)]
    except OSError:
        return []


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


@lru_cache(maxsize=512)
def _compiled(name: str) -> re.Pattern[str]:
    return re.compile(
        "".join(_WILD.get(piece) or re.escape(piece) for piece in re.split(r"([*?])", name)), re.DOTALL
    )
