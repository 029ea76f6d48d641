"""What read-only commands need of the lower layers: the database reader, and the edge table of the graph."""

from pathlib import Path

from graph_agent.graph.edges import EDGES, END, START
from graph_agent.inspect import Reader
from graph_agent.storage.sqlite.read_store import SqliteReadStore

__all__ = ["EDGES", "END", "START", "read_database"]


def read_database(path: Path) -> Reader:
    """Open a database file: one of ours, of any version up to this one, or one of LangGraph's own SQLite saver.

    Raises:
        NothingYet: there is none.
        NewerSchema: a newer version of the program wrote it.
        DamagedDatabase: it is neither, or damaged.
        StorageError: it cannot be read.
    """
    return Reader(SqliteReadStore.open(path))
