from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from graph_agent.calls import ToolCallInfo
from graph_agent.ports import Answer, Question, SystemClock
from graph_agent.session.dependencies import SessionDependencies, Thread
from graph_agent.session.questions import QuestionQueue
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.decisions import SqliteDecisions
from graph_agent.storage.sqlite.journal import SqliteJournal
from tests.fakes.database_rows import record_of


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with await Database.open(tmp_path / "graph-agent.db") as opened:
        yield opened


def _journal(database: Database) -> SqliteJournal:
    return SqliteJournal(database, FileBlobs(database.path.with_name("blobs")), SystemClock())


def _desk(database: Database) -> QuestionQueue:
    parts = SimpleNamespace(decisions=SqliteDecisions(database), journal=_journal(database), clock=SystemClock())
    return QuestionQueue(
        Thread("t1", database.path.parent, "default", "tester", 50), cast("SessionDependencies", parts)
    )


def _read(attempt: int, **fields: Any) -> ToolCallInfo:
    values = {"kind": "readonly", "risk": "low", "started": True, "attempt": attempt, **fields}
    return cast("ToolCallInfo", record_of("interrupted", **values))


async def _answers(desk: QuestionQueue, call: ToolCallInfo) -> list[str]:
    question = Question("recovery", call["call_id"], call["attempt"], "d1", "")
    envelope = await desk.envelope([question], {call["call_id"]: call}, "life")
    return [] if envelope is None else [answer["kind"] for answer in envelope["answers"].values()]


async def test_a_read_is_run_again_unasked_until_it_was_broken_off_three_times(database: Database) -> None:
    given = []
    for attempt in (1, 2, 3):
        await _journal(database).claim("t1", "call_a", attempt, "life", None)
        given.append(await _answers(_desk(database), _read(attempt)))

    assert given == [["retry"], ["retry"], []]


async def test_attempts_that_never_began_or_were_undone_are_no_reason_to_ask_about_a_read(
    database: Database,
) -> None:
    await _journal(database).claim("t1", "call_a", 1, "life", None)
    await database.write(lambda connection: connection.execute("UPDATE journal SET reverted = 1"))

    given = [await _answers(_desk(database), _read(attempt)) for attempt in (2, 3, 4, 5)]

    assert given == [["retry"]] * 4


async def test_one_life_does_not_try_again_for_ever_what_never_begins(database: Database) -> None:
    desk = _desk(database)

    given = [await _answers(desk, _read(attempt, started=False)) for attempt in (1, 2, 3, 4)]

    assert given == [["retry"], ["retry"], ["retry"], []]


async def test_what_may_have_changed_something_is_never_run_again_unasked(database: Database) -> None:
    assert await _answers(_desk(database), _read(1, kind="write")) == []
    assert await _answers(_desk(database), _read(1, risk="medium")) == []


async def test_an_answer_is_noted_as_taken_in_or_where_its_question_is_asked_again_taken_back(
    database: Database,
) -> None:
    taken, refused = (Question("approval", call_id, 1, "d1") for call_id in ("call_a", "call_b"))
    for question in (taken, refused):
        await SqliteDecisions(database).insert("t1", question, Answer("approve", "chat", "2026-01-01"))

    await _desk(database).mark_applied([taken, refused], still_open=[refused])

    noted = "SELECT call_id, applied_at IS NOT NULL, superseded_at IS NOT NULL FROM decisions ORDER BY id"
    rows = await database.run(lambda connection: connection.execute(noted).fetchall())
    assert rows == [("call_a", True, False), ("call_b", False, True)]
