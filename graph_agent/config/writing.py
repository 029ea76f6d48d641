"""Replaces a private text file of the agent in one step. Knows nothing of what stands in it."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from graph_agent.config.private import make_private_folder

__all__ = ["alone", "replace_text"]


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Make the folder, private, and hold it: of two changes made at once none is to be lost."""
    make_private_folder(folder)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def replace_text(path: Path, text: str) -> None:
    """Put a private new file in the place of the old one; a kill leaves one or the other."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
