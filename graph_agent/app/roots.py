"""Further folders a thread may work in, beside its workspace: which are meant, and which of them are there."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from graph_agent.config.paths import config_dir, data_dir
from graph_agent.config.settings import Settings
from graph_agent.errors import UsageError

__all__ = ["Place", "Roots", "roots_of", "wished_roots"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a thread works."""

    workspace: Path
    roots: tuple[Path, ...] = ()
    """Resolved."""


@dataclass(frozen=True, slots=True)
class Roots:
    """The folders of a thread beside its workspace."""

    usable: tuple[Path, ...] = ()
    """Resolved, and there."""
    gone: tuple[str, ...] = ()
    """Those that were folders once."""


def wished_roots(given: Sequence[str], settings: Settings) -> tuple[str, ...]:
    """The folders somebody asks for now, resolved.

    Raises:
        UsageError: one is no folder, the whole disk, or belongs to the agent itself.
    """
    return tuple(str(_checked(text, settings.database)) for text in given)


def roots_of(workspace: Path, stored: Iterable[str], settings: Settings) -> Roots:
    """The folders a thread has now: those of the user's settings, and its own as they were stored.

    Raises:
        UsageError: one of the settings is the whole disk or belongs to the agent itself.
    """
    usable: dict[Path, None] = {}
    gone: list[str] = []
    for text in dict.fromkeys((*map(str, settings.add_dirs), *stored)):
        path = Path(text).expanduser()
        if not path.is_dir():
            gone.append(text)
        elif not (root := _checked(text, settings.database)).is_relative_to(workspace.resolve()):
            usable[root] = None
    return Roots(tuple(usable), tuple(gone))


def _checked(text: str, database: Path) -> Path:
    path = Path(text).expanduser()
    if not path.is_dir():
        raise UsageError(f"--add-dir {text!r} is not a folder; create it or name another")
    root = path.resolve()
    if root == Path(root.anchor):
        raise UsageError(f"--add-dir {text!r} is the whole disk; name the folder that is needed")
    for own in (config_dir(os.environ), data_dir(os.environ), database.parent / f"{database.name}.blobs"):
        if root.is_relative_to(own.resolve()):
            raise UsageError(
                f"--add-dir {text!r} lies in {own}, which belongs to the agent itself; name another folder"
            )
    return root
