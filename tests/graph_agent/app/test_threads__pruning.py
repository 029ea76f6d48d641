from datetime import timedelta
from pathlib import Path

import pytest

from graph_agent.app.reader import read_database
from graph_agent.app.threads import PruneOrder, prune
from graph_agent.errors import UnknownId
from tests.fakes.scripted_model import ScriptedModel, text
from tests.scenarios.stage import THREAD, Stage

_OTHER = "another-thread"
_TURNS = 8


@pytest.fixture
async def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path / "agent.db", ScriptedModel())
    for thread_id in (THREAD, _OTHER):
        stage.model = ScriptedModel(*(text("some words of a long answer " * 700) for _ in range(_TURNS)))
        async with stage.life(thread=thread_id) as session:
            for number in range(_TURNS):
                await session.send(f"t{number}")
    return stage


def turns(stage: Stage, thread_id: str) -> int:
    with read_database(stage.database) as reader:
        return sum(entry.role == "user" for entry in reader.transcript(thread_id))


async def test_one_thread_is_pruned_and_stays_whole_and_resumable(stage: Stage) -> None:
    done = await prune(stage.database, PruneOrder(2, THREAD))

    [one] = done.threads
    assert (one.thread_id, one.checkpoints > 0, one.held_by) == (THREAD, True, "")
    assert done.bytes_after < done.bytes_before
    stage.model = ScriptedModel(text("more"))
    async with stage.life() as session:
        await session.start()
        rest = await session.send("go on")
    assert (rest.answer, turns(stage, THREAD), turns(stage, _OTHER)) == ("more", _TURNS + 1, _TURNS)
    assert len(stage.model.requests[0].messages) == 2 * _TURNS + 2


async def test_an_id_that_was_pruned_is_answered_with_the_next_that_stands(stage: Stage) -> None:
    with read_database(stage.database) as reader:
        first = reader.transcript(THREAD)[0].checkpoint_id
    await prune(stage.database, PruneOrder(2, THREAD))

    with read_database(stage.database) as reader, pytest.raises(UnknownId) as refusal:
        reader.resolve(first)

    following = str(refusal.value).removesuffix(".").rpartition(" ")[2]
    with read_database(stage.database) as reader:
        state = reader.inspection(THREAD, following).state
    assert f"Checkpoint {first} of thread {THREAD} was pruned" in str(refusal.value)
    assert len(state.values["messages"]) == 2 * (_TURNS - 2) + 1


async def test_a_thread_that_is_held_is_left_alone_and_named(stage: Stage) -> None:
    async with stage.life():
        done = await prune(stage.database, PruneOrder(1))

    by_thread = {one.thread_id: one for one in done.threads}
    assert (by_thread[THREAD].checkpoints, "is open in another process" in by_thread[THREAD].held_by) == (0, True)
    assert by_thread[_OTHER].checkpoints > 0


async def test_only_threads_of_the_age_are_pruned(stage: Stage) -> None:
    assert (await prune(stage.database, PruneOrder(1, older_than=timedelta(days=1)))).threads == ()


async def test_a_size_that_is_too_small_is_come_close_to_and_ends(stage: Stage) -> None:
    wide = await prune(stage.database, PruneOrder(_TURNS))

    narrow = await prune(stage.database, PruneOrder(_TURNS, max_bytes=1))

    assert wide.bytes_after == narrow.bytes_before > narrow.bytes_after
    assert {one.checkpoints > 0 for one in narrow.threads} == {True}


async def test_a_thread_prunes_itself_at_rest(stage: Stage) -> None:
    stage.keep_turns = 3
    stage.model = ScriptedModel(text("more"))
    async with stage.life() as session:
        await session.send("go on")

    assert (await prune(stage.database, PruneOrder(3, THREAD))).threads[0].checkpoints == 0
    assert turns(stage, THREAD) == _TURNS + 1
