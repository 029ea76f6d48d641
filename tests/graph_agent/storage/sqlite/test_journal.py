import sqlite3

import pytest

from graph_agent.ports import Claim, Intent, Journal, Outcome
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.journal import INLINE_BYTES, SqliteJournal
from tests.fakes.stepping_clock import SteppingClock
from tests.graph_agent.storage.sqlite.looking import rows, statements_of

_DONE = Outcome("success", "ok", summary="read it", metadata={"exit_code": 0})
_FAILED = Outcome("error", "", error="no such file")
_INTENT = Intent("/w/a.txt", None, "f" * 64)


@pytest.fixture
def journal(database: Database, blobs: FileBlobs, clock: SteppingClock) -> Journal:
    return SqliteJournal(database, blobs, clock)


async def test_a_big_outcome_stands_in_a_blob_that_the_row_names(
    database: Database, journal: Journal, blobs: FileBlobs
) -> None:
    await journal.claim("t", "c", 1, "life", None)
    await journal.finish("t", "c", 1, "life", Outcome("success", "x" * INLINE_BYTES))

    (stored,) = await rows(database, "SELECT length(outcome), json_extract(outcome, '$.blob') FROM journal")

    assert stored[0] < 100
    assert b"x" * INLINE_BYTES in blobs.get(stored[1])


async def test_calls_of_the_ledger_are_known_too(database: Database, journal: Journal) -> None:
    def plan(connection: sqlite3.Connection) -> None:
        connection.execute(
            "INSERT INTO call_log VALUES ('t', 'planned', 1, 'bash', 'pending', '', '{}', '1', '', 0)"
        )

    await database.write(plan)

    assert await journal.known_ids("t", ["planned", "new"]) == {"planned"}


async def test_an_undone_attempt_is_no_result_but_keeps_its_number(database: Database, journal: Journal) -> None:
    await journal.claim("t", "c", 1, "life", None)
    await journal.finish("t", "c", 1, "life", _DONE)
    await database.write(lambda connection: connection.execute("UPDATE journal SET reverted = 1"))

    assert await journal.rows("t", "c") == []
    assert await journal.claim("t", "c", 1, "life", None) == Claim(won=False)
    assert await journal.claim("t", "c", 2, "life", None) == Claim(won=True)


async def test_a_call_costs_two_transactions(database: Database, journal: Journal) -> None:
    seen = await statements_of(database)

    await journal.claim("t", "c", 1, "life", None)
    await journal.finish("t", "c", 1, "life", _DONE)

    assert seen == ["BEGIN", "SELECT", "SELECT", "INSERT", "COMMIT", "BEGIN", "UPDATE", "COMMIT"]
