"""Every implementation of the storage ports, each on an empty store."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from graph_agent.ports import Decisions, FileStates, Inbox, Journal
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.decisions import SqliteDecisions
from graph_agent.storage.sqlite.journal import SqliteJournal
from graph_agent.storage.sqlite.threads import SqliteFileStates, SqliteInbox
from tests.fakes.stepping_clock import SteppingClock

__all__ = ["Stores", "stores"]


@dataclass(frozen=True)
class Stores:
    """The ports of one store."""

    journal: Journal
    decisions: Decisions
    inbox: Inbox
    file_states: FileStates


@asynccontextmanager
async def _sqlite(folder: Path) -> AsyncIterator[Stores]:
    clock = SteppingClock()
    async with await Database.open(folder / "data" / "agent.db") as database:
        yield Stores(
            SqliteJournal(database, FileBlobs(folder / "blobs"), clock),
            SqliteDecisions(database),
            SqliteInbox(database, clock),
            SqliteFileStates(database, clock),
        )


_IMPLEMENTATIONS: dict[str, Callable[[Path], AbstractAsyncContextManager[Stores]]] = {"sqlite": _sqlite}


@pytest.fixture(params=_IMPLEMENTATIONS)
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stores]:
    async with _IMPLEMENTATIONS[request.param](tmp_path) as opened:
        yield opened
