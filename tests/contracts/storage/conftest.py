"""Every implementation of the storage ports, each on an empty store."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from graph_agent.ports import Decisions, Grants, Journal
from graph_agent.ports.storage import FileStates, Inbox
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.decisions import SqliteDecisions, SqliteGrants
from graph_agent.storage.sqlite.journal import SqliteJournal
from graph_agent.storage.sqlite.threads import SqliteFileStates, SqliteInbox
from tests.fakes.stepping_clock import SteppingClock

__all__ = ["Stores", "decisions", "file_states", "grants", "inbox", "journal", "stores"]


@dataclass(frozen=True)
class Stores:
    """The ports of one store."""

    journal: Journal
    decisions: Decisions
    grants: Grants
    inbox: Inbox
    file_states: FileStates


@asynccontextmanager
async def _sqlite(folder: Path) -> AsyncIterator[Stores]:
    clock = SteppingClock()
    async with await Database.open(folder / "data" / "agent.db") as database:
        yield Stores(
            SqliteJournal(database, FileBlobs(folder / "blobs"), clock),
            SqliteDecisions(database),
            SqliteGrants(database),
            SqliteInbox(database, clock),
            SqliteFileStates(database, clock),
        )


_IMPLEMENTATIONS: dict[str, Callable[[Path], AbstractAsyncContextManager[Stores]]] = {"sqlite": _sqlite}


@pytest.fixture(params=_IMPLEMENTATIONS)
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stores]:
    async with _IMPLEMENTATIONS[request.param](tmp_path) as opened:
        yield opened


@pytest.fixture
def journal(stores: Stores) -> Journal:
    return stores.journal


@pytest.fixture
def decisions(stores: Stores) -> Decisions:
    return stores.decisions


@pytest.fixture
def grants(stores: Stores) -> Grants:
    return stores.grants


@pytest.fixture
def inbox(stores: Stores) -> Inbox:
    return stores.inbox


@pytest.fixture
def file_states(stores: Stores) -> FileStates:
    return stores.file_states
