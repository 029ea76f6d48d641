"""A new database on a server for each test: a copy of an empty one, which is made once."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from graph_agent.config.paths import ServerPath
from graph_agent.storage.postgres.database import PostgresDatabase
from tests.fakes.postgres_server import PostgresServer

__all__ = ["database", "place", "unwritten"]


@pytest.fixture(scope="session")
def unwritten(
    postgres: PostgresServer, postgres_template: str, tmp_path_factory: pytest.TempPathFactory
) -> ServerPath:
    """A database that no test writes to."""
    return ServerPath.from_url(postgres.create_database(postgres_template), tmp_path_factory.mktemp("unwritten"))


@pytest.fixture
def place(postgres: PostgresServer, postgres_template: str, tmp_path: Path) -> ServerPath:
    return ServerPath.from_url(postgres.create_database(postgres_template), tmp_path)


@pytest.fixture
async def database(place: ServerPath) -> AsyncIterator[PostgresDatabase]:
    async with await PostgresDatabase.open(place) as opened:
        yield opened
