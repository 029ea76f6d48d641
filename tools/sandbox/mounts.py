"""Where files are mounted over others in a sandbox: one table, in which the more exact path always wins.

What a sandbox lets a command do, whichever means keep it. Values only.

Whether something is there, as far as this user may know: what cannot be looked at counts as absent.

Of a folder that may not be entered `Path.exists` would raise, and PATH names such folders after a change of user.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Literal, NamedTuple

__all__ = ["Mount", "ProtectedNames", "SandboxRules", "in_order", "is_folder", "path_exists"]

Kind = Literal["write", "read", "empty"]


class Mount(NamedTuple):
    """One path and what becomes of it."""

    path: Path
    kind: Kind
    """write: as it is; read: as it is, unchangeable; empty: nothing in it, unchangeable."""
    source: Path | None = None
    """What is shown there instead; None for the path itself."""

    def lies_in(self, folder: Path) -> bool:
        """Whether it is below a folder, or the folder itself."""
        return self.path.is_relative_to(folder)


_RANK: dict[Kind, int] = {"write": 0, "read": 1, "empty": 2}


def in_order(mounts: list[Mount]) -> Iterator[Mount]:
    """Outer before inner, and of one path only the strictest: so that nothing opens what another one closed."""
    strictest: dict[Path, Mount] = {}
    for mount in mounts:
        known = strictest.get(mount.path)
        if known is None or _RANK[mount.kind] > _RANK[known.kind]:
            strictest[mount.path] = mount
    yield from sorted(strictest.values(), key=lambda mount: len(mount.path.parts))


@dataclass(frozen=True)
class ProtectedNames:
    """Names that decide what runs later, or hold keys."""

    is_protected: Callable[[PurePath], bool] = lambda _: False
    """Whether a path, relative to a writable root, may not be written."""
    folders: tuple[str, ...] = ()
    """Folders that may not come to be at the top of a writable root either."""
    files: tuple[str, ...] = ()
    """Files of which the same is true."""
    others: tuple[str, ...] = ()
    """Names that are taken away again when they came to be there."""


@dataclass(frozen=True)
class SandboxRules:
    """Everything else can be read, and nothing else can be written."""

    writable: tuple[Path, ...]
    """Folders, resolved; the workspace is the first."""
    network: bool = False
    hidden: tuple[Path, ...] = ()
    """Key stores and the agent's own places; those that do not exist are no matter."""
    names: ProtectedNames = field(default_factory=ProtectedNames)
    visible: tuple[Path, ...] = ()
    """What must be seen though it lies in a folder for temporary files, which is replaced by a private one."""


def path_exists(path: Path) -> bool:
    """Whether the path leads to anything."""
    return os.path.exists(path)  # noqa: PTH110 - never raises


def is_folder(path: Path) -> bool:
    """Whether it leads to a folder."""
    return os.path.isdir(path)  # noqa: PTH112 - never raises
