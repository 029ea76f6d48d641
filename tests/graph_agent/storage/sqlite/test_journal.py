import sqlite3
from typing import Any

import pytest

from graph_agent.errors import InternalError
from graph_agent.ports import Claim, Intent, Journal, JournalRow, Outcome
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


def _row(attempt: int, **changes: Any) -> JournalRow:
    first: dict[str, Any] = {
        "call_id": "c",
        "attempt": attempt,
        "owner": "life",
        "status": "executing",
        "started_at": "2026-01-01T00:00:00.000Z",
    }
    return JournalRow(**{**first, **changes})


class TestJournal:
    async def test_a_call_nobody_claimed_has_no_rows(self, journal: Journal) -> None:
        assert await journal.rows("t", "c") == []

    async def test_a_claim_leaves_an_executing_row_with_its_intent(self, journal: Journal) -> None:
        claim = await journal.claim("t", "c", 1, "life", _INTENT)

        assert claim == Claim(won=True)
        assert await journal.rows("t", "c") == [_row(1, intent=_INTENT)]

    async def test_the_same_attempt_is_claimed_once(self, journal: Journal) -> None:
        await journal.claim("t", "c", 1, "life", None)

        assert await journal.claim("t", "c", 1, "another life", None) == Claim(won=False)
        assert await journal.rows("t", "c") == [_row(1)]

    async def test_a_lower_attempt_than_the_newest_is_not_claimed(self, journal: Journal) -> None:
        await journal.claim("t", "c", 2, "life", None)

        assert await journal.claim("t", "c", 1, "life", None) == Claim(won=False)

    async def test_a_higher_attempt_of_an_unfinished_call_is_claimed(self, journal: Journal) -> None:
        await journal.claim("t", "c", 1, "life", None)

        assert await journal.claim("t", "c", 2, "later", None) == Claim(won=True)
        assert [(row.attempt, row.owner) for row in await journal.rows("t", "c")] == [(1, "life"), (2, "later")]

    async def test_a_finished_call_is_never_claimed_again_and_its_row_is_returned(self, journal: Journal) -> None:
        await journal.claim("t", "c", 1, "life", None)
        await journal.finish("t", "c", 1, "life", _DONE)

        claim = await journal.claim("t", "c", 2, "later", None)

        finished = _row(1, status="success", ended_at="2026-01-01T00:00:01.000Z", outcome=_DONE)
        assert claim == Claim(won=False, finished=finished)
        assert await journal.rows("t", "c") == [finished]

    async def test_an_outcome_is_written_once(self, journal: Journal) -> None:
        await journal.claim("t", "c", 1, "life", None)

        answers = [await journal.finish("t", "c", 1, "life", outcome) for outcome in (_FAILED, _DONE)]

        assert answers == [True, False]
        assert [row.outcome for row in await journal.rows("t", "c")] == [_FAILED]

    async def test_only_the_owner_finishes(self, journal: Journal) -> None:
        await journal.claim("t", "c", 1, "life", None)

        assert await journal.finish("t", "c", 1, "another life", _DONE) is False
        assert await journal.rows("t", "c") == [_row(1)]

    async def test_an_owner_that_a_later_attempt_overtook_does_not_finish(self, journal: Journal) -> None:
        await journal.claim("t", "c", 1, "life", None)
        await journal.claim("t", "c", 2, "later", None)

        assert await journal.finish("t", "c", 1, "life", _DONE) is False

    @pytest.mark.parametrize("status", ["interrupted", "not_started"])
    async def test_a_call_broken_off_says_how_and_is_not_finished_afterwards(
        self, journal: Journal, status: Any
    ) -> None:
        await journal.claim("t", "c", 1, "life", None)

        await journal.record_interruption("t", "c", 1, "life", status)

        assert await journal.finish("t", "c", 1, "life", _DONE) is False
        assert await journal.rows("t", "c") == [_row(1, status=status, ended_at="2026-01-01T00:00:01.000Z")]

    async def test_breaking_off_leaves_an_outcome_alone(self, journal: Journal) -> None:
        await journal.claim("t", "c", 1, "life", None)
        await journal.finish("t", "c", 1, "life", _DONE)
        before = await journal.rows("t", "c")

        await journal.record_interruption("t", "c", 1, "life", "interrupted")

        assert await journal.rows("t", "c") == before

    async def test_breaking_off_is_the_owners(self, journal: Journal) -> None:
        await journal.claim("t", "c", 1, "life", None)

        await journal.record_interruption("t", "c", 1, "another life", "interrupted")

        assert await journal.rows("t", "c") == [_row(1)]

    async def test_a_process_group_is_recorded_once_with_its_start(self, journal: Journal) -> None:
        await journal.claim("t", "c", 1, "life", None)

        await journal.record_process("t", "c", 1, 4711, "12345")

        (row,) = await journal.rows("t", "c")
        assert (row.process_group, row.process_started) == (4711, "12345")
        with pytest.raises(InternalError, match="group 4712 cannot be recorded"):
            await journal.record_process("t", "c", 1, 4712, "12346")

    async def test_a_process_group_of_an_unclaimed_call_is_refused(self, journal: Journal) -> None:
        with pytest.raises(InternalError, match="attempt 1 of call 'c' is not executing"):
            await journal.record_process("t", "c", 1, 4711, "12345")

    async def test_calls_of_other_threads_are_others(self, journal: Journal) -> None:
        await journal.claim("t", "c", 1, "life", None)

        assert await journal.rows("other", "c") == []
        assert await journal.claim("other", "c", 1, "life", None) == Claim(won=True)
        assert await journal.known_ids("other", ["c", "d"]) == {"c"}

    async def test_an_outcome_of_any_size_and_text_comes_back_whole(self, journal: Journal) -> None:
        big = Outcome("success", "ü" * INLINE_BYTES, metadata={"diff": "\x00'\"\n"})
        await journal.claim("t", "c", 1, "life", None)

        await journal.finish("t", "c", 1, "life", big)

        assert [row.outcome for row in await journal.rows("t", "c")] == [big]

    async def test_ids_with_lone_surrogates_are_one_call(self, journal: Journal) -> None:
        await journal.claim("t", "c\ud800", 1, "life", None)

        assert await journal.finish("t", "c\ud800", 1, "life", _DONE) is True
        assert await journal.known_ids("t", ["c\ud800"]) == {"c?"}


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
