import asyncio
from dataclasses import replace

import pytest

from graph_agent.errors import QuestionChanged
from graph_agent.ports import Answer, Grant, Grants, Question
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.decisions import SqliteDecisions, SqliteGrants
from tests.contracts.storage.conftest import Engine
from tests.graph_agent.storage.sqlite.looking import execute, rows

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


_LOGGED = """
INSERT INTO call_log (thread_id, call_id, seq, tool_name, status, risk, record, checkpoint_id, updated_at)
VALUES ('t', 'c', 1, 'bash', 'awaiting_approval', 'medium', '{"args_digest": "digest"}', 'c1', '')
"""


@pytest.mark.parametrize(
    ("change", "is_asked"),
    [
        ("UPDATE call_log SET status = 'executing'", True),
        ("""UPDATE call_log SET record = '{"attempt": 1}'""", True),
        ("""UPDATE call_log SET record = '{"args_digest": "other"}'""", False),
        ("""UPDATE call_log SET record = '{"args_digest": "digest", "attempt": 2}'""", False),
        ("UPDATE call_log SET status = 'cancelled'", False),
        ("UPDATE call_log SET abandoned = 1", False),
        ("DELETE FROM call_log", False),
    ],
)
async def test_an_answer_from_another_process_counts_only_while_its_question_is_asked(
    database: Database, decisions: SqliteDecisions, change: str, is_asked: bool
) -> None:
    await execute(database, _LOGGED)
    await execute(database, change)
    other = await decisions.insert("t", replace(_ASKED, args_digest="other"), _NO)

    if is_asked:
        assert await decisions.insert_if_asked("t", _ASKED, _YES) == _YES
        return
    with pytest.raises(QuestionChanged, match="Call 'c' asks something else now"):
        await decisions.insert_if_asked("t", _ASKED, _YES)
    assert await decisions.find_answers("t", [replace(_ASKED, args_digest="other")]) == {"c": other}


async def test_who_answers_second_gets_the_first_answer_whatever_has_become_of_the_call(
    database: Database, decisions: SqliteDecisions
) -> None:
    await execute(database, _LOGGED)
    await decisions.insert_if_asked("t", _ASKED, _YES)
    await execute(database, "UPDATE call_log SET status = 'success'")

    assert await decisions.insert_if_asked("t", _ASKED, _NO) == _YES


async def test_the_approval_of_a_call_is_known_after_it_was_superseded(decisions: SqliteDecisions) -> None:
    edit = Answer("edit", "chat", "2026-01-01T00:00:00.000Z", arguments={"command": "ls"})
    await decisions.insert("t", _ASKED, edit)
    await decisions.supersede("t", ["c"], "2026-01-02T00:00:00.000Z")
    await decisions.insert("t", _ASKED, replace(_YES, at="2026-01-03T00:00:00.000Z"))

    found = [
        await decisions.latest_approval("t", "c", f"{day}T12:00:00.000Z") for day in ("2025-12-31", "2026-01-01")
    ]

    assert found == [None, edit]


_AT = "2026-01-01T00:00:00.000Z"


_GRANT = Grant("thread", ("bash(git add '*')", "bash(ls)"), "default", "t", "/w", "c", "chat pid 1", _AT, "sub")


def _yes(grant: Grant | None = _GRANT, by: str = "chat pid 1") -> Answer:
    return Answer("approve", by, _AT, grant=grant)


@pytest.fixture
def grants(database: Database) -> SqliteGrants:
    return SqliteGrants(database)


@pytest.mark.parametrize("folders", [(), (("sub",), (".", "sub"))])
async def test_a_grant_is_stored_with_its_answer_and_comes_back_as_it_was(
    decisions: SqliteDecisions, grants: Grants, folders: tuple[tuple[str, ...], ...]
) -> None:
    grant = replace(_GRANT, folders=folders)
    await decisions.insert("t", _ASKED, _yes(grant))

    assert await grants.in_force("t", "/w") == [replace(grant, id=1)]


async def test_an_answer_that_came_too_late_stores_no_grant(decisions: SqliteDecisions, grants: Grants) -> None:
    await decisions.insert("t", _ASKED, Answer("reject", "cli pid 2", _AT))

    await decisions.insert("t", _ASKED, _yes())

    assert await grants.in_force("t", "/w") == []


async def test_two_simultaneous_always_answers_store_one_grant(engine: Engine, grants: Grants) -> None:
    async def answer(number: int) -> Answer:
        async with await engine.open() as own:
            grant = replace(_GRANT, by=f"cli pid {number}")
            return await SqliteDecisions(own).insert("t", _ASKED, _yes(grant, grant.by))

    standing = await asyncio.gather(*map(answer, range(8)))

    [stored] = await grants.in_force("t", "/w")
    assert {answer.by for answer in standing} == {stored.by}


async def test_answer_and_grant_are_stored_together_or_not_at_all(
    database: Database, decisions: SqliteDecisions
) -> None:
    await execute(database, "DROP TABLE grants")

    with pytest.raises(Exception, match="grants"):
        await decisions.insert("t", _ASKED, _yes())

    assert await decisions.find_answers("t", [_ASKED]) == {}


@pytest.mark.parametrize(
    ("scope", "holds"),
    [
        ("thread", [("t", "/w")]),
        ("project", [("t", "/w"), ("u", "/w")]),
        ("user", [("t", "/w"), ("t", "/elsewhere"), ("u", "/w"), ("u", "/elsewhere")]),
    ],
)
async def test_a_grant_applies_within_its_scope(
    decisions: SqliteDecisions, grants: Grants, scope: str, holds: list[tuple[str, str]]
) -> None:
    await decisions.insert("t", _ASKED, _yes(replace(_GRANT, scope=scope)))  # type: ignore[arg-type]  # one of the three

    everywhere = [(thread, workspace) for thread in ("t", "u") for workspace in ("/w", "/elsewhere")]
    assert [place for place in everywhere if await grants.in_force(*place)] == holds


async def test_a_revoked_grant_no_longer_applies_and_its_id_is_not_reused(
    database: Database, decisions: SqliteDecisions, grants: Grants
) -> None:
    await decisions.insert("t", _ASKED, _yes())

    assert await grants.revoke(1, "cli pid 3", _AT) == replace(_GRANT, id=1)
    assert (await grants.revoke(1, "cli pid 4", _AT), await grants.revoke(7, "cli pid 4", _AT)) == (None, None)
    assert await grants.in_force("t", "/w") == []
    assert await rows(database, "SELECT revoked_by FROM grants") == [("cli pid 3",)]

    await decisions.insert("t", replace(_ASKED, call_id="d"), _yes())
    assert [grant.id for grant in await grants.in_force("t", "/w")] == [2]
