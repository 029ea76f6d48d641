from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from graph_agent.errors import AnswerRefused
from graph_agent.ports import AlwaysRules, Answer, Grant, Question, Scope, SystemClock
from graph_agent.session.answer_checks import attach_grant, review_edit
from graph_agent.session.dependencies import SessionDependencies, Thread
from graph_agent.session.graph_runner import QuestionQueue
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.decisions import SqliteDecisions
from graph_agent.storage.sqlite.journal import SqliteJournal
from tests.fakes.database_rows import record_of
from tests.fakes.scripted_session import approval
from tests.fakes.scripted_toolbox import ScriptedToolbox

_SCOPE = Scope("t1", "acceptEdits")
_AT = "2026-01-01T00:00:00.000Z"


async def test_an_edited_question_shows_the_edited_call_as_policy_evaluates_it() -> None:
    item = approval("c1", "write_x", {"path": "a"}, preview={"kind": "text", "text": "old"}, reason="old")

    shown = await review_edit(item, {"path": "b"}, ScriptedToolbox(), _SCOPE)

    changed = {"arguments": {"path": "b"}, "preview": None, "summary": "", "risk": "medium", "risk_reason": ""}
    assert (shown.call, shown.question) == ({**item.call, **changed}, replace(item.question, reason="it writes"))


@pytest.mark.parametrize("tool", ["deny_x", "bad_x"])
async def test_arguments_that_may_not_run_are_refused(tool: str) -> None:
    with pytest.raises(AnswerRefused, match="The edited arguments were not accepted: "):
        await review_edit(approval("c1", tool, {}), {}, ScriptedToolbox(), _SCOPE)


def test_an_answer_with_always_carries_a_grant_for_its_mode_and_folder() -> None:
    answer = Answer("approve", "chat", _AT)

    given = attach_grant(answer, AlwaysRules("project", ("bash(ls)", "bash(rm x)"), "sub"), "c1", _SCOPE, "/w")

    grant = Grant("project", ("bash(ls)", "bash(rm x)"), "acceptEdits", "t1", "/w", "c1", "chat", _AT, "sub")
    assert given == replace(answer, grant=grant, reason="always in this project: bash(ls), bash(rm x)")


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with await Database.open(tmp_path / "graph-agent.db") as opened:
        yield opened


def _journal(database: Database) -> SqliteJournal:
    return SqliteJournal(database, FileBlobs(database.path.with_name("blobs")), SystemClock())


def _queue(database: Database) -> QuestionQueue:
    dependencies = SimpleNamespace(
        decisions=SqliteDecisions(database), journal=_journal(database), clock=SystemClock()
    )
    thread = Thread("t1", database.path.parent, "default", "tester", 50)
    return QuestionQueue(thread, cast("SessionDependencies", dependencies))


async def _answers(queue: QuestionQueue, attempt: int, **fields: Any) -> list[str]:
    """The kinds of the answers that are given without a person about an interrupted read."""
    values = {"kind": "readonly", "risk": "low", "started": True, "attempt": attempt, **fields}
    call: Any = record_of("interrupted", **values)
    question = Question("recovery", call["call_id"], attempt, "d1", "")
    envelope = await queue.envelope([question], {call["call_id"]: call}, "owner")
    return [] if envelope is None else [answer["kind"] for answer in envelope["answers"].values()]


async def test_a_read_is_retried_without_asking_until_it_was_interrupted_three_times(database: Database) -> None:
    given = []
    for attempt in (1, 2, 3):
        await _journal(database).claim("t1", "call_a", attempt, "owner", None)
        given.append(await _answers(_queue(database), attempt))

    assert given == [["retry"], ["retry"], []]


async def test_attempts_that_never_started_or_were_reverted_do_not_count(database: Database) -> None:
    await _journal(database).claim("t1", "call_a", 1, "owner", None)
    await database.write(lambda connection: connection.execute("UPDATE journal SET reverted = 1"))

    assert [await _answers(_queue(database), attempt) for attempt in (2, 3, 4, 5)] == [["retry"]] * 4


async def test_one_run_does_not_retry_forever_what_never_starts(database: Database) -> None:
    queue = _queue(database)

    given = [await _answers(queue, attempt, started=False) for attempt in (1, 2, 3, 4)]

    assert given == [["retry"], ["retry"], ["retry"], []]


async def test_a_call_that_may_have_changed_something_is_never_retried_without_asking(database: Database) -> None:
    changes: list[dict[str, str]] = [{"kind": "write"}, {"risk": "medium"}]

    assert [await _answers(_queue(database), 1, **fields) for fields in changes] == [[], []]


async def test_an_answer_is_marked_applied_or_superseded_if_its_question_is_asked_again(database: Database) -> None:
    applied, rejected = (Question("approval", call_id, 1, "d1") for call_id in ("call_a", "call_b"))
    for question in (applied, rejected):
        await SqliteDecisions(database).insert("t1", question, Answer("approve", "chat", "2026-01-01"))

    await _queue(database).mark_applied([applied, rejected], still_open=[rejected])

    statement = "SELECT call_id, applied_at IS NOT NULL, superseded_at IS NOT NULL FROM decisions ORDER BY id"
    rows = await database.run(lambda connection: connection.execute(statement).fetchall())
    assert rows == [("call_a", True, False), ("call_b", False, True)]
