"""What every implementation of the storage ports keeps: journal, decisions, inbox and file states."""

from dataclasses import replace
from typing import Any

import pytest

from graph_agent.errors import InternalError
from graph_agent.ports import Answer, Claim, Intent, JournalRow, Outcome, Question
from graph_agent.storage.sqlite.journal import INLINE_BYTES
from tests.contracts.storage.conftest import Stores

_START, _END = "2026-01-01T00:00:00.000Z", "2026-01-01T00:00:01.000Z"
_DONE = Outcome("success", "ok", summary="read it", metadata={"exit_code": 0})
_FAILED = Outcome("error", "", error="no such file")
_INTENT = Intent("/w/a.txt", None, "f" * 64)


def row(attempt: int = 1, **changes: Any) -> JournalRow:
    first = JournalRow("c", attempt, "run 1", "executing", _START)
    return replace(first, **changes)


async def test_a_claim_leaves_an_executing_row_with_its_intent(stores: Stores) -> None:
    assert await stores.journal.rows("t", "c") == []

    assert await stores.journal.claim("t", "c", 1, "run 1", _INTENT) == Claim(won=True)

    assert await stores.journal.rows("t", "c") == [row(intent=_INTENT)]


@pytest.mark.parametrize(
    ("claimed", "claim", "won"),
    [
        ((1, "run 1"), (1, "run 2"), False),
        ((2, "run 1"), (1, "run 1"), False),
        ((1, "run 1"), (2, "run 2"), True),
    ],
    ids=["the same attempt", "a lower attempt", "a higher attempt"],
)
async def test_only_a_higher_attempt_of_an_unfinished_call_is_claimed(
    stores: Stores, claimed: tuple[int, str], claim: tuple[int, str], won: bool
) -> None:
    await stores.journal.claim("t", "c", *claimed, None)

    assert await stores.journal.claim("t", "c", *claim, None) == Claim(won=won)

    rows = [(one.attempt, one.owner) for one in await stores.journal.rows("t", "c")]
    assert rows == ([claimed, claim] if won else [claimed])


async def test_a_finished_call_is_never_claimed_again_and_its_row_is_returned(stores: Stores) -> None:
    await stores.journal.claim("t", "c", 1, "run 1", None)
    await stores.journal.finish("t", "c", 1, "run 1", _DONE)

    claim = await stores.journal.claim("t", "c", 2, "run 2", None)

    finished = row(status="success", ended_at=_END, outcome=_DONE)
    assert claim == Claim(won=False, finished=finished)
    assert await stores.journal.rows("t", "c") == [finished]


async def test_an_outcome_is_written_once_and_no_interruption_replaces_it(stores: Stores) -> None:
    await stores.journal.claim("t", "c", 1, "run 1", None)

    answers = [await stores.journal.finish("t", "c", 1, "run 1", outcome) for outcome in (_FAILED, _DONE)]
    before = await stores.journal.rows("t", "c")
    await stores.journal.record_interruption("t", "c", 1, "run 1", "interrupted")

    assert answers == [True, False]
    assert [one.outcome for one in before] == [_FAILED]
    assert await stores.journal.rows("t", "c") == before


async def test_only_the_owner_of_the_newest_attempt_finishes_or_interrupts_it(stores: Stores) -> None:
    await stores.journal.claim("t", "c", 1, "run 1", None)

    assert await stores.journal.finish("t", "c", 1, "run 2", _DONE) is False
    await stores.journal.record_interruption("t", "c", 1, "run 2", "interrupted")
    assert await stores.journal.rows("t", "c") == [row()]

    await stores.journal.claim("t", "c", 2, "run 2", None)
    assert await stores.journal.finish("t", "c", 1, "run 1", _DONE) is False


@pytest.mark.parametrize("status", ["interrupted", "not_started"])
async def test_an_interrupted_attempt_says_how_and_is_not_finished_afterwards(stores: Stores, status: Any) -> None:
    await stores.journal.claim("t", "c", 1, "run 1", None)

    await stores.journal.record_interruption("t", "c", 1, "run 1", status)

    assert await stores.journal.finish("t", "c", 1, "run 1", _DONE) is False
    assert await stores.journal.rows("t", "c") == [row(status=status, ended_at=_END)]


async def test_a_process_group_is_recorded_once_with_its_start_and_only_of_a_claimed_call(stores: Stores) -> None:
    with pytest.raises(InternalError, match="attempt 1 of call 'c' is not executing"):
        await stores.journal.record_process("t", "c", 1, 4711, "12345")
    await stores.journal.claim("t", "c", 1, "run 1", None)

    await stores.journal.record_process("t", "c", 1, 4711, "12345")

    [found] = await stores.journal.rows("t", "c")
    assert (found.process_group, found.process_started) == (4711, "12345")
    with pytest.raises(InternalError, match="group 4712 cannot be recorded"):
        await stores.journal.record_process("t", "c", 1, 4712, "12346")


async def test_calls_of_other_threads_are_others(stores: Stores) -> None:
    await stores.journal.claim("t", "c", 1, "run 1", None)

    assert await stores.journal.rows("other", "c") == []
    assert await stores.journal.claim("other", "c", 1, "run 1", None) == Claim(won=True)
    assert await stores.journal.known_ids("other", ["c", "d"]) == {"c"}


@pytest.mark.parametrize(
    ("call_id", "outcome"),
    [("c", Outcome("success", "ü" * INLINE_BYTES, metadata={"diff": "\x00'\"\n"})), ("c\ud800", _DONE)],
    ids=["an outcome of any size and text", "an id with a lone surrogate"],
)
async def test_any_outcome_and_any_id_come_back(stores: Stores, call_id: str, outcome: Outcome) -> None:
    await stores.journal.claim("t", call_id, 1, "run 1", None)

    assert await stores.journal.finish("t", call_id, 1, "run 1", outcome) is True

    assert [one.outcome for one in await stores.journal.rows("t", call_id)] == [outcome]
    assert await stores.journal.known_ids("t", [call_id]) == {call_id.replace("\ud800", "?")}


_QUESTION = Question("approval", "c", 1, "digest")
_YES = Answer("approve", "chat", _START)
_NO = Answer("reject", "cli:pid 4711", _END, reason="not that one")


@pytest.mark.parametrize(
    "answer",
    [
        _NO,
        Answer("edit", "chat", _START, arguments={"command": "ls", "n": [1, None]}),
        replace(_YES, outside_sandbox=True),
    ],
    ids=["a refusal with its reason", "edited arguments", "outside the sandbox"],
)
async def test_an_answer_comes_back_as_it_was_and_the_first_one_wins(stores: Stores, answer: Answer) -> None:
    assert await stores.decisions.insert("t", _QUESTION, answer) == answer
    assert await stores.decisions.insert("t", _QUESTION, _YES) == answer

    assert await stores.decisions.find_answers("t", [_QUESTION]) == {"c": answer}
    assert await stores.decisions.latest_approval("t", "c", answer.at) == (None if answer == _NO else answer)


@pytest.mark.parametrize(
    ("thread", "other"),
    [
        ("t", replace(_QUESTION, args_digest="other arguments")),
        ("t", replace(_QUESTION, attempt=2)),
        ("t", replace(_QUESTION, kind="recovery")),
        ("t", replace(_QUESTION, call_id="d")),
        ("other thread", _QUESTION),
    ],
)
async def test_an_answer_fits_its_own_question_only(stores: Stores, thread: str, other: Question) -> None:
    await stores.decisions.insert("t", _QUESTION, _YES)

    assert await stores.decisions.find_answers(thread, [other]) == {}
    assert await stores.decisions.insert(thread, other, _NO) == _NO


async def test_an_applied_answer_stays_and_questions_without_one_are_left_out(stores: Stores) -> None:
    await stores.decisions.insert("t", _QUESTION, _YES)
    await stores.decisions.mark_applied("t", [_QUESTION], "2026-01-01T00:00:05.000Z")

    open_question = replace(_QUESTION, call_id="open")
    assert await stores.decisions.find_answers("t", [open_question, _QUESTION]) == {"c": _YES}


async def test_messages_wait_in_order_until_each_is_taken(stores: Stores) -> None:
    for text in ("one", "two", "three\ud800"):
        await stores.inbox.queue("t", text, "chat")
    await stores.inbox.queue("other", "not yours", "chat")
    waiting = await stores.inbox.waiting("t")

    await stores.inbox.take("t", waiting[1][0])
    await stores.inbox.take("other", waiting[0][0])

    assert [text for _, text in waiting] == ["one", "two", "three?"]
    assert await stores.inbox.waiting("t") == [waiting[0], waiting[2]]


async def test_a_message_is_removed_once_and_only_while_it_waits(stores: Stores) -> None:
    numbers = [await stores.inbox.queue("t", text, "chat") for text in ("one", "two", "three")]
    await stores.inbox.take("t", numbers[0])

    removed = [await stores.inbox.remove("t", number) for number in (*numbers[:2], numbers[1])]
    foreign = await stores.inbox.remove("other", numbers[2])

    assert (removed, foreign) == ([False, True, False], False)
    assert await stores.inbox.waiting("t") == [(numbers[2], "three")]


async def test_the_last_state_of_a_file_is_known_per_thread(stores: Stores) -> None:
    for path, digest in (("/w/a", "old"), ("/w/a", "new"), ("/w/\udcff", "odd name")):
        await stores.file_states.set("t", path, digest)

    keys = [("t", "/w/a"), ("t", "/w/\udcff"), ("t", "/w/b"), ("u", "/w/a")]
    assert [await stores.file_states.get(*key) for key in keys] == ["new", "odd name", None, None]
