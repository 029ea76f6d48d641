"""A fresh database for each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.database import Database
from tests.fakes.stepping_clock import SteppingClock

__all__ = ["blobs", "clock", "database", "database_path"]


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
