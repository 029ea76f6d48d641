"""A fresh database for each test, and what works on it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.journal import SqliteJournal
from graph_agent.storage.sqlite.threads import SqliteInbox
from tests.fakes.stepping_clock import SteppingClock
from tests.graph_agent.storage.sqlite.small_graph import Graph, compile_graph

__all__ = ["blobs", "clock", "database", "database_path", "graph", "inbox", "journal", "saver"]


@pytest.fixture
def database_path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "agent.db"


@pytest.fixture
async def database(database_path: Path) -> AsyncIterator[Database]:
    async with await Database.open(database_path) as database:
        yield database


@pytest.fixture
def blobs(tmp_path: Path) -> FileBlobs:
    return FileBlobs(tmp_path / "blobs")


@pytest.fixture
def clock() -> SteppingClock:
    return SteppingClock()


@pytest.fixture
def saver(database: Database) -> CheckpointSaver:
    return CheckpointSaver(database)


@pytest.fixture
def graph(saver: CheckpointSaver) -> Graph:
    return compile_graph(saver)


@pytest.fixture
def journal(database: Database, blobs: FileBlobs, clock: SteppingClock) -> SqliteJournal:
    return SqliteJournal(database, blobs, clock)


@pytest.fixture
def inbox(database: Database, clock: SteppingClock) -> SqliteInbox:
    return SqliteInbox(database, clock)
