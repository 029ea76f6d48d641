"""Continuing from an older checkpoint: what runs, what is asked, what the model receives, what the thread shows."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from graph_agent.app.reader import read_database
from graph_agent.errors import UnknownId
from graph_agent.graph.history import require_valid
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database
from tests.fakes.scripted_model import ScriptedModel, calls, text
from tests.scenarios.stage import THREAD, Stage, answer, checkpoints, to_the_end, two_turns

_REFUSED = "Not run: the user rejected this call. Do not repeat it. The user said: not that"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "a.db", ScriptedModel())


def head(stage: Stage) -> str:
    with read_database(stage.database) as reader:
        return reader.thread(THREAD).checkpoint_id or ""


def shown(stage: Stage, *, all_branches: bool = False) -> list[str]:
    with read_database(stage.database) as reader:
        entries = reader.transcript(THREAD, all_branches=all_branches)
    return [str(entry.body["content"]) for entry in entries if entry.role == "user"]


async def test_from_each_checkpoint_of_a_thread_nothing_that_ran_runs_again_and_the_model_is_told_what_came_of_it(
    stage: Stage,
) -> None:
    await two_turns(stage)
    ran, places, lengths = list(stage.toolbox.ran), checkpoints(stage), []

    for place in places:
        stage.model = ScriptedModel()
        async with stage.open_session(checkpoint=place) as session:
            rest = await to_the_end(session, await session.start())
            await session.send("and now")
        for request in stage.model.requests:
            require_valid(request.messages)  # type: ignore[arg-type]  # what the state holds
        told = [content for kind, content in stage.model.sent() if kind == "tool"]
        lengths.append(len(told))
        assert rest.status == "done"
        assert told in (
            [],
            ["result of r", "result of w", _REFUSED],
            ["result of r", "result of w", _REFUSED, "partial\nError: it broke", "result of v"],
        )

    assert (lengths, set(lengths)) == (sorted(lengths), {0, 3, 5})
    assert stage.toolbox.ran == ran == [("r", {}), ("w", {}), ("f", {}), ("v", {})]


async def test_an_approval_is_asked_for_again_where_the_call_has_not_run(stage: Stage) -> None:
    stage.model = ScriptedModel(calls(("w", "write_a"), ("v", "write_b")), text("done"))
    async with stage.open_session() as session:
        rest = await session.send("go")
        await session.decide(rest.questions[0].question, "approve")
        place = rest.checkpoint_id
        await session.stop()

    async with stage.open_session(checkpoint=place) as session:
        again = await session.start()

    assert [item.question.call_id for item in again.questions] == ["w", "v"]
    assert stage.toolbox.ran == []


async def test_a_call_that_ran_with_edited_arguments_is_told_with_them_and_not_run_again(stage: Stage) -> None:
    stage.model = ScriptedModel(calls(("w", "write_a", {"text": "old"})), text("done"))
    async with stage.open_session() as session:
        rest = await session.send("go")
        await session.decide(rest.questions[0].question, "edit", arguments={"text": "new"})
        await session.proceed()

    stage.model = ScriptedModel(text("told"))
    stage.toolbox.denied_now = {"write_a"}
    async with stage.open_session(checkpoint=rest.checkpoint_id) as session:
        end = await session.start()

    assert (end.status, stage.toolbox.ran) == ("done", [("w", {"text": "new"})])
    assert stage.model.sent()[-1] == ("tool", "The user changed the arguments to {'text': 'new'}.\nresult of w")


async def test_a_call_that_was_broken_off_is_neither_run_again_unasked_nor_said_not_to_have_happened(
    stage: Stage,
) -> None:
    stage.model = ScriptedModel(calls(("s", "slow_a")), text("done"))
    async with stage.open_session() as session:
        asking = await session.send("go")
        await session.decide(asking.questions[0].question, "approve")
        turn = asyncio.create_task(session.proceed())
        await stage.toolbox.entered.wait()
        await session.stop()
        await turn
    async with stage.open_session(checkpoint=asking.checkpoint_id) as session:
        unknown = await answer(session, await session.start())
        stage.model = ScriptedModel()
    async with stage.open_session(checkpoint=asking.checkpoint_id) as session:
        await answer(session, await session.start(), s="reject")

    assert [item.question.reason for item in unknown.questions] == ["outcome_unknown"]
    assert len(stage.toolbox.ran) == 1
    told = f"Not run again: it may already have had an effect: {_REFUSED.partition(': ')[2]}"
    assert stage.model.sent()[-1] == ("tool", told)


@pytest.mark.parametrize("tool", ["read_a", "write_a"])
async def test_what_ran_is_not_refused_by_a_rule_that_came_later(stage: Stage, tool: str) -> None:
    stage.model = ScriptedModel(calls(("c", tool)), text("done"))
    async with stage.open_session() as session:
        await answer(session, await session.send("go"))
    stage.toolbox.denied_now = {tool}

    for place in checkpoints(stage)[3:]:
        stage.model = ScriptedModel(text("again"))
        async with stage.open_session(checkpoint=place) as session:
            rest = await to_the_end(session, await session.start())
            await session.send("and now")
        assert (rest.status, stage.model.sent()[2]) == ("done", ("tool", "result of c"))

    assert [call_id for call_id, _ in stage.toolbox.ran] == ["c"]


async def test_a_branch_of_a_branch_that_said_nothing_yet_shows_all_it_rests_on(stage: Stage) -> None:
    stage.model = ScriptedModel(text("one"), text("two"))
    async with stage.open_session() as session:
        first = await session.send("t1")
        await session.send("t2")
    async with stage.open_session(checkpoint=first.checkpoint_id) as session:
        copy = (await session.start()).checkpoint_id
    async with stage.open_session(checkpoint=checkpoints(stage)[0]) as session:
        await session.start()
    at_the_beginning = shown(stage)
    async with stage.open_session(checkpoint=copy) as session:
        rest = await session.start()

    # There the message is stored, and the next run processes it.
    assert (at_the_beginning, shown(stage), rest.answer) == (["t1"], ["t1"], "one")


async def test_questions_left_on_a_branch_are_nobodys_until_it_is_taken_up_again(stage: Stage) -> None:
    stage.model = ScriptedModel(text("one"), calls(("w", "write_a")))
    async with stage.open_session() as session:
        first = await session.send("t1")
        asking = await session.send("t2")

    def waiting() -> tuple[list[str], int, str]:
        with read_database(stage.database) as reader:
            thread = reader.thread(THREAD)
            return [view.record["call_id"] for view in reader.approvals()], thread.pending_approvals, thread.status

    before = waiting()
    stage.model = ScriptedModel(calls(("x", "write_b")))
    async with stage.open_session(checkpoint=first.checkpoint_id) as session:
        await session.start()
        await session.send("t2b")
    on_the_branch = waiting()
    async with stage.open_session(checkpoint=asking.checkpoint_id) as session:
        await session.start()

    assert before == waiting() == (["w"], 1, "waiting")
    assert on_the_branch == (["x"], 1, "waiting")


async def test_rebuilt_from_the_checkpoints_a_thread_with_branches_shows_the_same(stage: Stage) -> None:
    await two_turns(stage)
    for place in checkpoints(stage)[2::5]:
        stage.model = ScriptedModel()
        async with stage.open_session(checkpoint=place) as session:
            await to_the_end(session, await session.start())
    tables = ("threads", "transcript", "branches", "call_log")

    def content() -> list[list[tuple[object, ...]]]:
        connection = sqlite3.connect(stage.database)
        found = [connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3").fetchall() for table in tables]  # noqa: S608 - names from here
        connection.close()
        return found

    before = content()
    await rebuild(stage)

    assert len(before[2]) > 2
    assert content() == before


async def rebuild(stage: Stage) -> None:
    async with await Database.open(stage.database) as database:
        await CheckpointSaver(database).rebuild_projections(THREAD)


async def test_the_head_named_by_its_checkpoint_begins_no_branch(stage: Stage) -> None:
    stage.model = ScriptedModel(text("one"))
    async with stage.open_session() as session:
        first = await session.send("t1")
    async with stage.open_session(checkpoint=first.checkpoint_id) as session:
        await session.start()

    assert head(stage) == first.checkpoint_id


async def test_a_checkpoint_that_is_gone_gives_the_thread_back(stage: Stage) -> None:
    stage.model = ScriptedModel(text("one"))
    async with stage.open_session() as session:
        await session.send("t1")
    with pytest.raises(UnknownId, match="has no checkpoint 'gone'"):
        async with stage.open_session(checkpoint="gone"):
            pass
    async with stage.open_session() as session:
        rest = await session.start()

    assert rest.status == "done"
