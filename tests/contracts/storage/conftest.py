"""Every engine that storage works on. A test with one of these fixtures runs on each, on an empty database."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from graph_agent.config.paths import ServerPath
from graph_agent.ports import Decisions, FileStates, Inbox, Journal
from graph_agent.storage import open_database
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.decisions import SqliteDecisions
from graph_agent.storage.sqlite.journal import SqliteJournal
from graph_agent.storage.sqlite.threads import SqliteFileStates, SqliteInbox
from tests.fakes.stepping_clock import SteppingClock
from tests.graph_agent.storage.conftest import blobs, clock, graph, inbox, journal, saver

if TYPE_CHECKING:
    from tests.fakes.postgres_server import PostgresServer

__all__ = [
    "ENGINES",
    "Engine",
    "Stores",
    "blobs",
    "clock",
    "database",
    "engine",
    "graph",
    "inbox",
    "journal",
    "saver",
    "stores",
]


@dataclass(frozen=True)
class Engine:
    """An engine, and one database of it."""

    name: str
    open: Callable[[], Awaitable[Database]]
    """Opens that database; once more, as another process would."""


ENGINES = ("sqlite", "postgresql")


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    if request.param == "sqlite":
        yield Engine(request.param, lambda: open_database(tmp_path / "data" / "agent.db"))
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    url = server.create_database(request.getfixturevalue("postgres_template"))
    path = ServerPath.from_url(url, tmp_path / "servers")
    yield Engine(request.param, lambda: open_database(path))
    server.drop_database(url)


@pytest.fixture
async def database(engine: Engine) -> AsyncIterator[Database]:
    async with await engine.open() as database:
        yield database


@dataclass(frozen=True)
class Stores:
    """The ports of one database, which share a clock."""

    journal: Journal
    decisions: Decisions
    inbox: Inbox
    file_states: FileStates


@pytest.fixture
def stores(database: Database, journal: SqliteJournal, inbox: SqliteInbox, clock: SteppingClock) -> Stores:
    return Stores(journal, SqliteDecisions(database), inbox, SqliteFileStates(database, clock))
