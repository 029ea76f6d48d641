import sqlite3
from pathlib import Path

import pytest

from graph_agent.app.reader import read_database
from graph_agent.app.rewind import RewindOutcome, RewindRequest, rewind
from graph_agent.errors import UsageError
from graph_agent.events import WarningIssued
from graph_agent.ports import Rewind, SystemClock
from graph_agent.session.session import Session
from graph_agent.session.turn_result import TurnResult
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.rewinds import SqliteRewinds
from tests.fakes.scripted_model import ScriptedModel, calls, text
from tests.scenarios.stage import THREAD, Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "agent.db", ScriptedModel())


def query(stage: Stage, statement: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(stage.database, isolation_level=None)
    found = connection.execute(statement).fetchall()
    connection.close()
    return found


def journal(stage: Stage) -> list[tuple[object, ...]]:
    return query(stage, "SELECT call_id, attempt, status, reverted FROM journal ORDER BY call_id, attempt")


def shown(stage: Stage) -> list[str]:
    with read_database(stage.database) as reader:
        return [str(entry.body["content"]) for entry in reader.transcript(THREAD) if entry.role == "user"]


async def go_to(stage: Stage, text: str, *, is_undo: bool = False) -> RewindOutcome:
    query(stage, f"UPDATE threads SET workspace = '{stage.database.parent}'")  # noqa: S608 - a path of pytest's
    return await rewind(stage.database, RewindRequest(text, is_undo=is_undo, is_forced=True), lambda _: True)


async def to_the_end(session: Session, rest: TurnResult) -> TurnResult:
    for _ in range(20):
        if rest.status == "resumable":
            rest = await session.continue_turn()
        for item in rest.questions:
            await session.decide(item.question, "approve" if item.question.kind == "approval" else "retry")
        if rest.questions:
            rest = await session.proceed()
    return rest


async def test_a_call_from_there_on_is_a_new_attempt_that_is_approved_anew_once(stage: Stage) -> None:
    stage.model = ScriptedModel(calls(("w", "write_a")), text("one"), text("two"))
    async with stage.life() as session:
        asking = await session.send("go")
        await to_the_end(session, asking)

    await go_to(stage, asking.checkpoint_id)
    async with stage.life() as session:
        again = await session.start()
        await session.decide(again.questions[0].question, "approve")
        rest = await session.proceed()

    assert [item.question.kind for item in again.questions] == ["approval"]
    assert (rest.status, [call_id for call_id, _ in stage.toolbox.ran]) == ("done", ["w", "w"])
    assert journal(stage) == [("w", 1, "success", 1), ("w", 2, "success", 0)]


async def test_rewound_to_any_checkpoint_a_thread_goes_on_and_taken_back_it_is_where_it_was(stage: Stage) -> None:
    stage.model = ScriptedModel(
        calls(("a", "write_a"), ("b", "read_b")), text("one"), calls(("c", "write_c")), text("two")
    )
    async with stage.life() as session:
        await to_the_end(session, await session.send("t1"))
        await to_the_end(session, await session.send("t2"))
    ran = len(stage.toolbox.ran)

    for (place,) in query(stage, "SELECT checkpoint_id FROM checkpoints ORDER BY checkpoint_id"):
        await go_to(stage, str(place))
        await go_to(stage, THREAD, is_undo=True)
        assert shown(stage) == ["t1", "t2"]
        async with stage.life() as session:
            assert (await session.start()).status == "done"
    assert len(stage.toolbox.ran) == ran

    for (place,) in query(stage, "SELECT checkpoint_id FROM checkpoints ORDER BY checkpoint_id LIMIT 20")[::3]:
        await go_to(stage, str(place))
        stage.model = ScriptedModel()
        async with stage.life() as session:
            rest = await to_the_end(session, await session.start())
        assert rest.status == "done"
    settled = query(stage, "SELECT status FROM journal WHERE reverted = 0")
    assert {status for (status,) in settled} <= {"success"}


async def test_what_a_command_that_was_undone_did_is_not_said_not_to_have_happened(stage: Stage) -> None:
    stage.model = ScriptedModel(calls(("x", "fail_a"), ("w", "write_a")), text("one"), text("two"))
    async with stage.life() as session:
        asking = await session.send("go")
        await to_the_end(session, asking)
    query(stage, "UPDATE journal SET intent = NULL")

    await go_to(stage, asking.checkpoint_id)
    async with stage.life() as session:
        rest = await session.start()
        for item in rest.questions:
            await session.decide(item.question, "reject")
        await session.proceed()

    told = [answer for kind, answer in stage.model.told() if kind == "tool"]
    assert told[-1].startswith("Not run again, it may have had its effect before")


async def test_what_was_pruned_since_cannot_be_come_back_to_and_nothing_is_touched(stage: Stage) -> None:
    stage.model = ScriptedModel(text("one"), text("two"))
    async with stage.life() as session:
        first = await session.send("t1")
        await session.send("t2")
    await go_to(stage, first.checkpoint_id)
    query(stage, "DELETE FROM checkpoints WHERE checkpoint_id = (SELECT head FROM rewinds)")

    with pytest.raises(UsageError, match="was pruned; it cannot be undone"):
        await go_to(stage, THREAD, is_undo=True)

    assert shown(stage) == ["t1"]
    assert query(stage, "SELECT status FROM rewinds") == [("done",)]


async def test_a_noted_rewind_whose_place_is_gone_is_ended_and_told_and_the_thread_opens(stage: Stage) -> None:
    stage.model = ScriptedModel(text("one"), text("two"))
    async with stage.life() as session:
        await session.send("t1")
    query(
        stage,
        "INSERT INTO rewinds (thread_id, checkpoint_id, head, scope, plan, status, at) SELECT thread_id, 'gone', "
        """checkpoint_id, 'both', '{"files": [], "calls": [], "reverts": null}', 'planned', '' FROM threads""",
    )

    async with stage.life() as session:
        await session.send("t2")

    assert shown(stage) == ["t1", "t2"]
    assert query(stage, "SELECT status FROM rewinds") == [("done",)]
    warned = [event.text for event in stage.events if isinstance(event, WarningIssued)]
    assert f"the conversation of {THREAD} stays as it is: checkpoint gone is gone" in warned[0]


async def test_what_ran_before_a_rewind_is_not_said_never_to_have_started(stage: Stage) -> None:
    stage.model = ScriptedModel(calls(("w", "write_a")), text("one"))
    async with stage.life() as session:
        asking = await session.send("go")
        await session.decide(asking.questions[0].question, "approve")
        await session.proceed()
    query(stage, "UPDATE journal SET intent = NULL")
    with read_database(stage.database) as reader:
        [marked] = [
            str(place)
            for (place,) in query(stage, "SELECT checkpoint_id FROM checkpoints")
            if reader.inspection(THREAD, str(place)).state.next == ("tool_execution",)
        ]

    await go_to(stage, marked)
    async with stage.life() as session:
        rest = await session.start()

    assert [(item.question.kind, item.question.reason) for item in rest.questions] == [
        ("recovery", "outcome_unknown")
    ]


async def test_a_rewind_that_was_broken_off_is_finished_by_whoever_opens_the_thread_next(stage: Stage) -> None:
    stage.model = ScriptedModel(text("one"), text("two"))
    async with stage.life() as session:
        first = await session.send("t1")
        second = await session.send("t2")
    async with await Database.open(stage.database) as database:
        noted = Rewind(THREAD, first.checkpoint_id, second.checkpoint_id, "both")
        await SqliteRewinds(database, SystemClock()).plan(noted)

    async with stage.life() as session:
        await session.start()

    warnings = [event.text for event in stage.events if isinstance(event, WarningIssued)]
    assert shown(stage) == ["t1"]
    assert warnings == [f"An interrupted rewind to checkpoint {first.checkpoint_id} was finished now"]
    assert query(stage, "SELECT status FROM rewinds") == [("done",)]
