"""Which database a read-only command is about, and whose threads are meant when no id is given."""

import os
from pathlib import Path

from graph_agent.config.paths import database_path

__all__ = ["database_of", "workspace_of"]


def database_of(flag: str | None) -> Path:
    """The database file of the flag, the environment or the data folder."""
    return database_path(os.environ, flag)


def workspace_of(flag: str | None) -> str | None:
    """The folder whose newest thread an absent id means; None, so any, where a file was named."""
    return None if flag else str(Path.cwd())
