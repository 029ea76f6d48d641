"""Which paths belong to the agent itself: pure comparisons of resolved paths, and a look at a command's text."""

import re
from collections.abc import Iterable
from pathlib import PurePath

__all__ = ["is_reserved", "names_reserved"]


def is_reserved(
    path: PurePath, workspace: PurePath, reserved: Iterable[PurePath], open_files: Iterable[PurePath] = ()
) -> bool:
    """Whether a resolved path is, or lies in, one of the agent's own places.

    A workspace that lies in such a place is the user's choice: what is in the workspace is then not reserved.
    """
    if path in open_files:
        return False
    return any(
        _holds(root, path) and not (_lies_in(workspace, root) and _holds(workspace, path)) for root in reserved
    )


def names_reserved(command: str, workspace: PurePath, reserved: Iterable[PurePath]) -> str:
    """The reserved place a command's text names, in full or by its last two parts; empty when it names none."""
    for root in reserved:
        if _holds(root, workspace):
            continue
        if any(re.search(f"{re.escape(text)}(?![\\w.-])", command) for text in _spellings(root)):
            return str(root)
    return ""


def _spellings(root: PurePath) -> list[str]:
    ending = "/".join(root.parts[-2:])
    # Only a name of our own is telling enough to be matched without the folders above it.
    return [str(root), ending] if "graph-agent" in root.name else [str(root)]


def _holds(root: PurePath, path: PurePath) -> bool:
    return path.is_relative_to(root)


def _lies_in(workspace: PurePath, root: PurePath) -> bool:
    return workspace.is_relative_to(root)
