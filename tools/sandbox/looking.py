"""Whether something is there, as far as this user may know: what cannot be looked at counts as absent.

Of a folder that may not be entered `Path.exists` would raise, and PATH names such folders after a change of user.
"""

import os
from pathlib import Path

__all__ = ["is_folder", "is_there"]


def is_there(path: Path) -> bool:
    """Whether the path leads to anything."""
    return os.path.exists(path)  # noqa: PTH110 - never raises


def is_folder(path: Path) -> bool:
    """Whether it leads to a folder."""
    return os.path.isdir(path)  # noqa: PTH112 - never raises
