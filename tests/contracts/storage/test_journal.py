from typing import Any

import pytest

from graph_agent.errors import InternalError
from graph_agent.ports import Claim, Intent, Journal, JournalRow, Outcome
from graph_agent.storage.sqlite.journal import INLINE_BYTES

_DONE = Outcome("success", "ok", summary="read it", metadata={"exit_code": 0})
_FAILED = Outcome("error", "", error="no such file")
_INTENT = Intent("/w/a.txt", None, "f" * 64)


def _row(attempt: int, **changes: Any) -> JournalRow:
    first: dict[str, Any] = {
        "call_id": "c",
        "attempt": attempt,
        "owner": "life",
        "status": "executing",
        "started_at": "2026-01-01T00:00:00.000Z",
    }
    return JournalRow(**{**first, **changes})


async def test_a_call_nobody_claimed_has_no_rows(journal: Journal) -> None:
    assert await journal.rows("t", "c") == []


async def test_a_claim_leaves_an_executing_row_with_its_intent(journal: Journal) -> None:
    claim = await journal.claim("t", "c", 1, "life", _INTENT)

    assert claim == Claim(won=True)
    assert await journal.rows("t", "c") == [_row(1, intent=_INTENT)]


async def test_the_same_attempt_is_claimed_once(journal: Journal) -> None:
    await journal.claim("t", "c", 1, "life", None)

    assert await journal.claim("t", "c", 1, "another life", None) == Claim(won=False)
    assert await journal.rows("t", "c") == [_row(1)]


async def test_a_lower_attempt_than_the_newest_is_not_claimed(journal: Journal) -> None:
    await journal.claim("t", "c", 2, "life", None)

    assert await journal.claim("t", "c", 1, "life", None) == Claim(won=False)


async def test_a_higher_attempt_of_an_unfinished_call_is_claimed(journal: Journal) -> None:
    await journal.claim("t", "c", 1, "life", None)

    assert await journal.claim("t", "c", 2, "later", None) == Claim(won=True)
    assert [(row.attempt, row.owner) for row in await journal.rows("t", "c")] == [(1, "life"), (2, "later")]


async def test_a_finished_call_is_never_claimed_again_and_its_row_is_returned(journal: Journal) -> None:
    await journal.claim("t", "c", 1, "life", None)
    await journal.finish("t", "c", 1, "life", _DONE)

    claim = await journal.claim("t", "c", 2, "later", None)

    finished = _row(1, status="success", ended_at="2026-01-01T00:00:01.000Z", outcome=_DONE)
    assert claim == Claim(won=False, finished=finished)
    assert await journal.rows("t", "c") == [finished]


async def test_an_outcome_is_written_once(journal: Journal) -> None:
    await journal.claim("t", "c", 1, "life", None)

    answers = [await journal.finish("t", "c", 1, "life", outcome) for outcome in (_FAILED, _DONE)]

    assert answers == [True, False]
    assert [row.outcome for row in await journal.rows("t", "c")] == [_FAILED]


async def test_only_the_owner_finishes(journal: Journal) -> None:
    await journal.claim("t", "c", 1, "life", None)

    assert await journal.finish("t", "c", 1, "another life", _DONE) is False
    assert await journal.rows("t", "c") == [_row(1)]


async def test_an_owner_that_a_later_attempt_overtook_does_not_finish(journal: Journal) -> None:
    await journal.claim("t", "c", 1, "life", None)
    await journal.claim("t", "c", 2, "later", None)

    assert await journal.finish("t", "c", 1, "life", _DONE) is False


@pytest.mark.parametrize("status", ["interrupted", "not_started"])
async def test_a_call_broken_off_says_how_and_is_not_finished_afterwards(journal: Journal, status: Any) -> None:
    await journal.claim("t", "c", 1, "life", None)

    await journal.record_interruption("t", "c", 1, "life", status)

    assert await journal.finish("t", "c", 1, "life", _DONE) is False
    assert await journal.rows("t", "c") == [_row(1, status=status, ended_at="2026-01-01T00:00:01.000Z")]


async def test_breaking_off_leaves_an_outcome_alone(journal: Journal) -> None:
    await journal.claim("t", "c", 1, "life", None)
    await journal.finish("t", "c", 1, "life", _DONE)
    before = await journal.rows("t", "c")

    await journal.record_interruption("t", "c", 1, "life", "interrupted")

    assert await journal.rows("t", "c") == before


async def test_breaking_off_is_the_owners(journal: Journal) -> None:
    await journal.claim("t", "c", 1, "life", None)

    await journal.record_interruption("t", "c", 1, "another life", "interrupted")

    assert await journal.rows("t", "c") == [_row(1)]


async def test_a_process_group_is_recorded_once_with_its_start(journal: Journal) -> None:
    await journal.claim("t", "c", 1, "life", None)

    await journal.record_process("t", "c", 1, 4711, "12345")

    (row,) = await journal.rows("t", "c")
    assert (row.process_group, row.process_started) == (4711, "12345")
    with pytest.raises(InternalError, match="group 4712 cannot be recorded"):
        await journal.record_process("t", "c", 1, 4712, "12346")


async def test_a_process_group_of_an_unclaimed_call_is_refused(journal: Journal) -> None:
    with pytest.raises(InternalError, match="attempt 1 of call 'c' is not executing"):
        await journal.record_process("t", "c", 1, 4711, "12345")


async def test_calls_of_other_threads_are_others(journal: Journal) -> None:
    await journal.claim("t", "c", 1, "life", None)

    assert await journal.rows("other", "c") == []
    assert await journal.claim("other", "c", 1, "life", None) == Claim(won=True)
    assert await journal.known_ids("other", ["c", "d"]) == {"c"}


async def test_an_outcome_of_any_size_and_text_comes_back_whole(journal: Journal) -> None:
    big = Outcome("success", "ü" * INLINE_BYTES, metadata={"diff": "\x00'\"\n"})
    await journal.claim("t", "c", 1, "life", None)

    await journal.finish("t", "c", 1, "life", big)

    assert [row.outcome for row in await journal.rows("t", "c")] == [big]


async def test_ids_with_lone_surrogates_are_one_call(journal: Journal) -> None:
    await journal.claim("t", "c\ud800", 1, "life", None)

    assert await journal.finish("t", "c\ud800", 1, "life", _DONE) is True
    assert await journal.known_ids("t", ["c\ud800"]) == {"c?"}
