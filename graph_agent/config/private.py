"""Folders that are closed to everyone else from the moment they exist. Standard library only, as `paths`."""

import os
from pathlib import Path

__all__ = ["make_private_folder"]


def make_private_folder(folder: Path) -> None:
    """Create the folder and what is missing above it, each 0700 whatever the umask; existing ones are left alone.

    Their names survive a power failure.
    """
    if folder.is_dir():
        return
    make_private_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    parent = os.open(folder.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)
