"""A thread forked at any checkpoint: what it shows, what it asks again, and that nothing that ran runs again."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from graph_agent.app.reader import read_database
from graph_agent.app.threads import Forked, fork
from graph_agent.errors import UnknownId, UsageError
from graph_agent.session.session import Session
from graph_agent.session.turn_result import TurnResult
from tests.fakes.scripted_model import ScriptedModel, calls, text
from tests.scenarios.stage import THREAD, Stage

_TABLES = ("threads", "checkpoints", "writes", "transcript", "branches", "call_log", "journal", "decisions")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "agent.db", ScriptedModel())


def rows_of(stage: Stage, *tables: str, columns: str = "*") -> list[list[tuple[object, ...]]]:
    with closing(sqlite3.connect(stage.database)) as connection:
        statements = (f"SELECT {columns} FROM {table} WHERE thread_id = ?" for table in tables or _TABLES)  # noqa: S608 - names from here
        return [sorted(connection.execute(statement, (THREAD,)), key=repr) for statement in statements]


def shown(stage: Stage, thread_id: str = THREAD) -> list[tuple[str, object]]:
    with read_database(stage.database) as reader:
        return [(entry.role, entry.body["content"]) for entry in reader.transcript(thread_id)]


async def approve_all(session: Session, rest: TurnResult) -> TurnResult:
    while rest.questions:
        for item in rest.questions:
            await session.decide(item.question, "approve" if item.question.kind == "approval" else "retry")
        rest = await session.proceed()
    return rest


async def two_turns(stage: Stage) -> None:
    stage.model = ScriptedModel(
        calls(("a", "write_a"), ("b", "read_b")), text("one"), calls(("c", "write_c")), text("two")
    )
    async with stage.open_session() as session:
        await approve_all(session, await session.send("t1"))
        await approve_all(session, await session.send("t2"))


@pytest.mark.slow
async def test_forked_at_each_checkpoint_a_thread_ends_with_every_call_run_once_and_the_origin_as_it_was(
    stage: Stage,
) -> None:
    await two_turns(stage)
    before, ran = rows_of(stage), list(stage.toolbox.ran)

    [checkpoints] = rows_of(stage, "checkpoints", columns="checkpoint_id")
    for number, (place,) in enumerate(checkpoints):
        made = await fork(stage.database, str(place), thread_id=f"fork-{number}")
        stage.model = ScriptedModel()
        async with stage.open_session(thread=made.thread_id) as session:
            rest = await approve_all(session, await session.start())
            if rest.status == "resumable":
                rest = await session.continue_turn()
        assert rest.status == "done"

    assert stage.toolbox.ran == ran
    assert rows_of(stage) == before


async def test_a_fork_shows_the_conversation_up_to_its_checkpoint_and_the_calls_as_they_were_there(
    stage: Stage,
) -> None:
    stage.model = ScriptedModel(text("one"), text("two"), text("other"))
    async with stage.open_session() as session:
        first = await session.send("t1")
        await session.send("t2")

    made = await fork(stage.database, first.checkpoint_id, thread_id="f")
    async with stage.open_session(thread="f") as session:
        await session.send("t2 of the fork")

    assert made == Forked("f", THREAD, first.checkpoint_id, turns=1, open_calls=0)
    assert shown(stage, "f") == [
        ("system", "system"),
        ("user", "t1"),
        ("assistant", "one"),
        ("user", "t2 of the fork"),
        ("assistant", "other"),
    ]
    assert shown(stage) == [*shown(stage, "f")[:3], ("user", "t2"), ("assistant", "two")]


async def test_an_approval_given_in_the_origin_is_asked_for_again_in_the_fork(stage: Stage) -> None:
    stage.model = ScriptedModel(calls(("w", "write_a"), ("v", "write_b")))
    async with stage.open_session() as session:
        asking = await session.send("go")
        await session.decide(asking.questions[0].question, "approve")

    made = await fork(stage.database, THREAD, thread_id="f")
    async with stage.open_session(thread="f") as session:
        rest = await session.start()

    assert made.open_calls == 2
    assert [item.question.call_id for item in rest.questions] == ["w", "v"]
    assert stage.toolbox.ran == []


async def test_a_call_that_may_have_begun_in_the_origin_comes_back_interrupted_in_the_fork(stage: Stage) -> None:
    stage.model = ScriptedModel(calls(("s", "slow_a")))
    async with stage.open_session() as session:
        asking = await session.send("go")
        await session.decide(asking.questions[0].question, "approve")
        going = asyncio.create_task(session.proceed())
        await stage.toolbox.entered.wait()
        await fork(stage.database, THREAD, thread_id="held")
        await session.stop()
        await going

    await fork(stage.database, asking.checkpoint_id, thread_id="f")
    async with stage.open_session(thread="f") as session:
        asked_again = await session.start()
        await session.stop()
    async with stage.open_session(thread="held") as session:
        held = await session.start()

    with read_database(stage.database) as reader:
        call = reader.call("f", "s").record
    [open_question], [asked] = held.questions, asked_again.questions
    assert (open_question.question.kind, open_question.question.reason) == ("recovery", "outcome_unknown")
    assert asked.question.kind == "approval"
    assert (call["status"], call["started"]) == ("cancelled", True)


async def test_a_fork_of_a_branch_has_what_that_branch_shows(stage: Stage) -> None:
    stage.model = ScriptedModel(text("one"), text("two"), text("other"))
    async with stage.open_session() as session:
        first = await session.send("t1")
        await session.send("t2")
    async with stage.open_session(checkpoint=first.checkpoint_id) as session:
        await session.start()
        await session.send("t2b")

    await fork(stage.database, THREAD, thread_id="f")

    assert shown(stage, "f") == shown(stage)
    assert shown(stage)[-2:] == [("user", "t2b"), ("assistant", "other")]


async def test_a_shared_checkpoint_id_means_the_origin_and_with_its_thread_the_fork(stage: Stage) -> None:
    stage.model = ScriptedModel(text("one"))
    async with stage.open_session() as session:
        first = await session.send("t1")

    await fork(stage.database, THREAD, thread_id="f")

    with read_database(stage.database) as reader:
        found = [
            reader.resolve(name).thread_id
            for name in (first.checkpoint_id, first.checkpoint_id[-12:], f"f:{first.checkpoint_id}")
        ]
    assert found == [THREAD, THREAD, "f"]


async def test_a_taken_id_an_unknown_checkpoint_and_an_empty_thread_are_refused_and_change_nothing(
    stage: Stage,
) -> None:
    stage.model = ScriptedModel(text("one"))
    async with stage.open_session() as session:
        await session.send("t1")
    before = rows_of(stage)

    with pytest.raises(UsageError, match=f"Thread '{THREAD}' already exists"):
        await fork(stage.database, THREAD, thread_id=THREAD)
    with pytest.raises(UsageError, match="--as needs an id that is not blank"):
        await fork(stage.database, THREAD, thread_id=" ")
    with pytest.raises(UnknownId, match="nowhere"):
        await fork(stage.database, "nowhere")

    assert rows_of(stage) == before
