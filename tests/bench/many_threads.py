"""Makes a home of the agent with many threads: one real one, and copies of all its rows under other ids."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

__all__ = ["fill_home"]

_AWAITING_APPROVAL = 3


def fill_home(home: Path, threads: int) -> Mapping[str, str]:
    """Create the threads, each with a call that waits; returns the environment that names the home."""
    env = {"GRAPH_AGENT_HOME": str(home), "OPENAI_API_KEY": "", "OPENAI_BASE_URL": "", "GRAPH_AGENT_BASE_URL": ""}
    workspace = home / "workspace"
    workspace.mkdir(parents=True)
    made = subprocess.run(
        [sys.executable, "-m", "graph_agent", "run", "run echo hello", "--workspace", str(workspace)],
        env={**os.environ, **env},
        check=False,
        capture_output=True,
        text=True,
    )
    if made.returncode != _AWAITING_APPROVAL:
        raise RuntimeError(f"the first thread ended with {made.returncode}, not with a question: {made.stderr}")
    with closing(sqlite3.connect(home / "data" / "graph-agent.db")) as connection, connection:
        _multiply(connection, threads)
    connection.close()
    return env


def _multiply(connection: sqlite3.Connection, threads: int) -> None:
    copies = [(f"-{number}",) for number in range(1, threads)]
    for table, columns in _tables_of_threads(connection):
        names = ", ".join(columns)
        connection.executemany(
            f"INSERT INTO {table} (thread_id, {names}) SELECT thread_id || ?, {names} FROM {table} "  # noqa: S608 - names of the schema
            f"WHERE thread_id = (SELECT thread_id FROM threads ORDER BY rowid LIMIT 1)",
            copies,
        )


def _tables_of_threads(connection: sqlite3.Connection) -> list[tuple[str, list[str]]]:
    """Each table that has rows of threads, with its other columns; a row number of its own is made anew."""
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    columns = {table: [row[1] for row in connection.execute(f"PRAGMA table_info({table})")] for table in tables}
    return [
        (table, [name for name in names if name not in ("thread_id", "id")])
        for table, names in columns.items()
        if "thread_id" in names
    ]
