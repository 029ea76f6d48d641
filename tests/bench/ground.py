"""The ground the rows are measured on: folders, a home with many threads, a tree of many files, each made once."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.fakes.openai_server import FakeOpenAI

__all__ = ["Ground", "home_of"]

_THREADS = 1_000
_AWAITING_APPROVAL = 3
_FILES_PER_FOLDER = 100
_LINES = b"def value(number):\n    return number * 2\n# a line of text that says nothing at all\n" * 12
_NEEDLE = b"the needle stands here\n"


@dataclass(frozen=True)
class Ground:
    """Where everything is made; it goes when the run is over."""

    folder: Path
    quick: bool = False
    """Fewer repetitions, shorter threads, fewer files: to see that the rows work, not to quote."""

    @property
    def runs(self) -> int:
        """How often each of a pair is timed."""
        return 3 if self.quick else 9

    @property
    def files(self) -> int:
        """How many files the tree has."""
        return 20_000 if self.quick else 100_000

    def fresh(self, name: str) -> Path:
        """A new folder."""
        number = sum(1 for made in self.folder.iterdir() if made.name.startswith(f"{name}-"))
        made = self.folder / f"{name}-{number}"
        made.mkdir()
        return made

    @cached_property
    def crowd(self) -> Mapping[str, str]:
        """Environment of a home with many threads."""
        return _fill_home(self.folder / "crowd", _THREADS)

    @cached_property
    def tree(self) -> Path:
        """A repository of many files, an ignored folder beside them; every thousandth file holds `the needle`."""
        root = self.folder / "tree"
        (root / ".git").mkdir(parents=True)
        (root / ".gitignore").write_text("*.log\nbuild/\n/dist\n", encoding="utf-8")
        (root / "build").mkdir()
        (root / "build" / "made.py").write_bytes(_NEEDLE)
        for number in range(self.files // _FILES_PER_FOLDER):
            below = root / f"package{number // 10:03}" / f"module{number % 10}"
            below.mkdir(parents=True)
            for place in range(_FILES_PER_FOLDER):
                holds = (number * _FILES_PER_FOLDER + place) % 1000 == 0
                ending = "py" if place % 10 else "ts"
                (below / f"file{place:02}.{ending}").write_bytes(_LINES + (_NEEDLE if holds else b""))
        return root


def home_of(folder: Path, server: FakeOpenAI | None = None) -> Mapping[str, str]:
    """The environment of a home of its own, with the scripted server as its endpoint."""
    bare = dict.fromkeys(("OPENAI_API_KEY", "OPENAI_BASE_URL", "GRAPH_AGENT_BASE_URL"), "")
    environment = {**os.environ, **bare, "GRAPH_AGENT_HOME": str(folder / "home")}
    if server is None:
        return environment
    return {**environment, "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "any", "GRAPH_AGENT_MODEL": "fake"}


def _fill_home(home: Path, threads: int) -> Mapping[str, str]:
    """Create the threads, each with a call that waits; returns the environment that names the home."""
    env = {"GRAPH_AGENT_HOME": str(home), "OPENAI_API_KEY": "", "OPENAI_BASE_URL": "", "GRAPH_AGENT_BASE_URL": ""}
    workspace = home / "workspace"
    workspace.mkdir(parents=True)
    made = subprocess.run(
        [sys.executable, "-m", "graph_agent", "run", "run touch hello", "--workspace", str(workspace)],
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
