"""Which database a read-only command is about, and whose threads are meant when no id is given."""

import os
import sys
from pathlib import Path

from graph_agent.cli.escape import escape
from graph_agent.config.paths import database_path
from graph_agent.inspect import Reader

__all__ = ["database_of", "reading", "workspace_of"]


def database_of(flag: str | None) -> Path:
    """The database file of the flag, the environment or the data folder."""
    return database_path(os.environ, flag)


def workspace_of(flag: str | None) -> str | None:
    """The folder whose newest thread an absent id means; None, so any, where a file was named."""
    return None if flag else str(Path.cwd())


def reading(database: Path) -> Reader:
    """The database opened for reading; what is to be known of how that went is told on stderr."""
    reader = Reader.open(database)
    if reader.note:
        sys.stderr.write(f"graph-agent: {escape(reader.note)}\n")
    return reader
