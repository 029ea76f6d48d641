from dataclasses import replace

import pytest

from graph_agent.ports import Answer, Question
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.decisions import SqliteDecisions
from tests.graph_agent.storage.sqlite.looking import rows

_ASKED = Question("approval", "c", 1, "digest")
_YES = Answer("approve", "chat", "2026-01-01T00:00:00.000Z")
_NO = Answer("reject", "cli:pid 4711", "2026-01-01T00:00:01.000Z", reason="not that one")


@pytest.fixture
def decisions(database: Database) -> SqliteDecisions:
    return SqliteDecisions(database)


async def test_the_time_of_application_is_noted_once(database: Database, decisions: SqliteDecisions) -> None:
    await decisions.insert("t", _ASKED, _YES)

    await decisions.mark_applied("t", [_ASKED], "first")
    await decisions.mark_applied("t", [_ASKED], "second")

    assert await rows(database, "SELECT applied_at FROM decisions") == [("first",)]


async def test_superseded_answers_stay_on_record_and_answer_nothing(
    database: Database, decisions: SqliteDecisions
) -> None:
    await decisions.insert("t", _ASKED, _YES)

    await decisions.supersede("t", ["c"], "2026-01-02T00:00:00.000Z")

    assert await decisions.find_answers("t", [_ASKED]) == {}
    assert await decisions.insert("t", _ASKED, _NO) == _NO
    assert await rows(database, "SELECT kind, superseded_at FROM decisions ORDER BY id") == [
        ("approve", "2026-01-02T00:00:00.000Z"),
        ("reject", None),
    ]


async def test_what_let_a_call_through_is_known_after_it_was_taken_back(decisions: SqliteDecisions) -> None:
    edit = Answer("edit", "chat", "2026-01-01T00:00:00.000Z", arguments={"command": "ls"})
    await decisions.insert("t", _ASKED, edit)
    await decisions.supersede("t", ["c"], "2026-01-02T00:00:00.000Z")
    await decisions.insert("t", _ASKED, replace(_YES, at="2026-01-03T00:00:00.000Z"))

    found = [
        await decisions.latest_approval("t", "c", f"{day}T12:00:00.000Z") for day in ("2025-12-31", "2026-01-01")
    ]

    assert found == [None, edit]
