"""What a sandbox allows, whichever backend enforces it, and the table of what is mounted where."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Literal, NamedTuple

__all__ = ["Mount", "ProtectedNames", "SandboxRules", "is_folder", "ordered_mounts", "path_exists"]


@dataclass(frozen=True)
class ProtectedNames:
    """Names that decide what runs later, or hold keys."""

    is_protected: Callable[[PurePath], bool] = lambda _: False
    """Whether a path, relative to a writable root, must not be written."""
    folders: tuple[str, ...] = ()
    """Folders that must not be created at the top of a writable root either: a placeholder takes their place."""
    files: tuple[str, ...] = ()
    """Files of which the same is true."""
    removed: tuple[str, ...] = ()
    """Names that get no placeholder; they are removed again if they appear there."""


@dataclass(frozen=True)
class SandboxRules:
    """Everything else can be read, and nothing else can be written."""

    writable: tuple[Path, ...]
    """Folders, resolved; the workspace is the first."""
    network: bool = False
    hidden: tuple[Path, ...] = ()
    """Key stores and the agent's own files; those that do not exist are ignored."""
    names: ProtectedNames = field(default_factory=ProtectedNames)
    visible: tuple[Path, ...] = ()
    """What must be visible although it is in a shared temporary folder, which a private one replaces."""


MountKind = Literal["write", "read", "empty"]
_STRICTNESS: dict[MountKind, int] = {"write": 0, "read": 1, "empty": 2}


class Mount(NamedTuple):
    """One path and how it appears in the sandbox."""

    path: Path
    kind: MountKind
    """write: as it is; read: as it is, but not writable; empty: without content, and not writable."""
    source: Path | None = None
    """What appears there instead; None for the path itself."""


def ordered_mounts(mounts: list[Mount]) -> Iterator[Mount]:
    """Outer before inner, and of each path only the strictest, so that no mount opens what another one closed."""
    strictest: dict[Path, Mount] = {}
    for mount in mounts:
        known = strictest.get(mount.path)
        if known is None or _STRICTNESS[mount.kind] > _STRICTNESS[known.kind]:
            strictest[mount.path] = mount
    yield from sorted(strictest.values(), key=lambda mount: len(mount.path.parts))


# `Path.exists` raises for a folder that this user may not enter; PATH names such folders after a change of user.


def path_exists(path: Path) -> bool:
    """Whether the path leads to anything, as far as this user may know."""
    return os.path.exists(path)  # noqa: PTH110 - never raises


def is_folder(path: Path) -> bool:
    """Whether the path leads to a folder, as far as this user may know."""
    return os.path.isdir(path)  # noqa: PTH112 - never raises
