import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from graph_agent.app.approvals import RecordedAnswer, answer_approval, revoke_grant
from graph_agent.app.reader import read_database
from graph_agent.calls import args_digest
from graph_agent.errors import AnswerRefused, NothingYet, UnknownId
from graph_agent.ports import Answer, Question
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.decisions import SqliteDecisions
from tests.fakes.database_rows import Rows, record_of

_NOW = "2026-11-28T12:00:00.000Z"


class _FixedClock:
    def now(self) -> str:
        return _NOW


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Rows]:
    filled = Rows(tmp_path / "graph-agent.db")
    filled.thread(next_nodes=("human_approval",))
    filled.call(record_of("awaiting_approval"))
    yield filled
    filled.close()


async def test_an_approval_is_recorded_for_exactly_what_was_shown(rows: Rows) -> None:
    answered = await answer_approval(rows.path, "call_a", "approve", by="cli pid 1", clock=_FixedClock())

    async with await Database.open(rows.path) as database:
        standing = await SqliteDecisions(database).find_answers("t1", [Question("approval", "call_a", 1, "d1")])
    assert answered == RecordedAnswer("call_a", "t1", "approve", accepted=True, by="cli pid 1", at=_NOW)
    assert standing == {"call_a": Answer("approve", "cli pid 1", _NOW)}


async def test_the_first_answer_wins_and_a_later_one_is_told_who_was_first(rows: Rows) -> None:
    first = await answer_approval(
        rows.path, "t1:call_a", "reject", by="cli pid 1", reason="no", clock=_FixedClock()
    )

    second = await answer_approval(rows.path, "call_a", "approve", by="cli pid 2")

    assert first.accepted
    assert second == RecordedAnswer("call_a", "t1", "reject", accepted=False, by="cli pid 1", at=_NOW)
    with read_database(rows.path) as reader:
        [view] = reader.approvals()
    assert view.answer is not None
    assert (view.answer.reason, view.is_waiting) == ("no", False)


async def test_of_answers_given_at_once_exactly_one_is_accepted(rows: Rows) -> None:
    given = await asyncio.gather(
        *(answer_approval(rows.path, "call_a", "approve", by=f"cli pid {number}") for number in range(8))
    )

    assert sum(answered.accepted for answered in given) == 1
    assert len({(answered.by, answered.at) for answered in given}) == 1


async def test_an_answer_the_graph_has_taken_in_is_told_as_the_one_that_stands(rows: Rows) -> None:
    rows.execute("UPDATE call_log SET status = 'success', record = json_set(record, '$.status', 'success')")
    rows.decision("approve", applied_at=_NOW)

    answered = await answer_approval(rows.path, "call_a", "reject", by="cli pid 1")

    assert (answered.accepted, answered.kind, answered.by) == (False, "approve", "cli pid 7")


async def test_an_approval_that_was_taken_in_before_the_call_broke_off_is_told(rows: Rows) -> None:
    rows.execute("UPDATE call_log SET status = 'interrupted', record = json_set(record, '$.status', 'interrupted')")
    rows.decision("approve", applied_at=_NOW)

    answered = await answer_approval(rows.path, "call_a", "approve", by="cli pid 1")

    assert (answered.accepted, answered.kind, answered.by) == (False, "approve", "cli pid 7")


async def test_a_record_without_a_digest_is_bound_by_the_digest_of_its_arguments(rows: Rows) -> None:
    record = record_of("awaiting_approval", "call_b")
    del record["args_digest"]
    rows.call(record)

    await answer_approval(rows.path, "call_b", "approve", by="cli pid 1")

    question = Question("approval", "call_b", 1, args_digest("call_b", "bash", 1, {"command": "make"}))
    async with await Database.open(rows.path) as database:
        assert set(await SqliteDecisions(database).find_answers("t1", [question])) == {"call_b"}


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("success", "it is success; `graph-agent approvals list`"),
        ("interrupted", "it is interrupted; `graph-agent recover t1`"),
    ],
)
async def test_a_call_nobody_asks_about_is_refused(rows: Rows, status: str, words: str) -> None:
    rows.call(record_of(status, "call_b"))

    with pytest.raises(AnswerRefused, match=words):
        await answer_approval(rows.path, "call_b", "approve", by="cli pid 1")


async def test_a_question_of_an_abandoned_branch_cannot_be_answered(rows: Rows) -> None:
    rows.execute("UPDATE threads SET next_nodes = '[]'")

    with pytest.raises(AnswerRefused, match="left behind on an earlier branch"):
        await answer_approval(rows.path, "call_a", "approve", by="cli pid 1")


async def test_unknown_ids_and_missing_databases_are_told_and_create_nothing(rows: Rows, tmp_path: Path) -> None:
    with pytest.raises(UnknownId, match="No call matches"):
        await answer_approval(rows.path, "call_x", "approve", by="cli pid 1")
    with pytest.raises(NothingYet):
        await answer_approval(tmp_path / "none.db", "call_a", "approve", by="cli pid 1")

    assert not (tmp_path / "none.db").exists()


async def test_of_several_threads_calls_with_one_id_the_only_one_that_waits_is_meant(rows: Rows) -> None:
    rows.thread("t2")
    rows.call(record_of("cancelled"), thread_id="t2")

    answered = await answer_approval(rows.path, "call_a", "approve", by="cli pid 1")

    assert (answered.thread_id, answered.accepted) == ("t1", True)


async def test_of_two_waiting_calls_with_one_id_neither_is_guessed(rows: Rows) -> None:
    rows.thread("t2", next_nodes=("human_approval",))
    rows.call(record_of("awaiting_approval"), thread_id="t2")

    with pytest.raises(UnknownId, match="t1:call_a"):
        await answer_approval(rows.path, "call_a", "approve", by="cli pid 1")


async def test_a_grant_is_taken_back_once(rows: Rows) -> None:
    rows.grant("bash(ls)")
    rows.grant("bash(rm x)")

    revoked = await revoke_grant(rows.path, "2", by="cli pid 1")

    with read_database(rows.path) as reader:
        assert (revoked.rules, [grant.id for grant in reader.grants()]) == (("bash(rm x)",), [1])
    with pytest.raises(UnknownId, match="these stand: 1;"):
        await revoke_grant(rows.path, "2", by="cli pid 1")


@pytest.mark.parametrize("text", ["", "0", "x", "01", "1; DROP TABLE grants"])
async def test_an_id_that_no_grant_has_takes_nothing_back(rows: Rows, text: str) -> None:
    rows.grant("bash(ls)")

    with pytest.raises(UnknownId):
        await revoke_grant(rows.path, text, by="cli pid 1")


async def test_without_a_database_none_is_made(rows: Rows) -> None:
    nowhere = rows.path.with_name("none.db")

    with pytest.raises(NothingYet):
        await revoke_grant(nowhere, "1", by="cli pid 1")

    assert not nowhere.exists()
