"""What a sandbox lets a command do, whichever means keep it. Values only."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePath

__all__ = ["Names", "Terms"]


@dataclass(frozen=True)
class Names:
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
class Terms:
    """Everything else can be read, and nothing else can be written."""

    writable: tuple[Path, ...]
    """Folders, resolved; the workspace is the first."""
    network: bool = False
    hidden: tuple[Path, ...] = ()
    """Key stores and the agent's own places; those that do not exist are no matter."""
    names: Names = field(default_factory=Names)
    visible: tuple[Path, ...] = ()
    """What must be seen though it lies in a folder for temporary files, which is replaced by a private one."""
