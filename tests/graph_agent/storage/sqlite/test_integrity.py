import asyncio
import shutil
from pathlib import Path

import pytest

from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.integrity import drop_incomplete_checkpoints
from tests.fakes.scripted_model import ScriptedModel
from tests.graph_agent.storage.sqlite.looking import content_of, execute, rows
from tests.scenarios.stage import THREAD, Stage, checkpoints, to_the_end, two_turns


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a thread with two turns, and a branch."""
    stage = Stage(tmp_path_factory.mktemp("played") / "a.db", ScriptedModel())

    async def play() -> None:
        await two_turns(stage)
        stage.model = ScriptedModel()
        async with stage.open_session(checkpoint=checkpoints(stage)[7]) as session:
            await to_the_end(session, await session.start())

    asyncio.run(play())
    return stage.database.parent


@pytest.fixture
def stage(played: Path, tmp_path: Path) -> Stage:
    shutil.copytree(played, tmp_path, dirs_exist_ok=True)
    return Stage(tmp_path / "a.db", ScriptedModel())


async def _dropped(stage: Stage, harm: str = "") -> dict[str, int]:
    async with await Database.open(stage.database) as database:
        if harm:
            assert await database.write(lambda connection: connection.execute(harm).rowcount) == 1
        return await database.write(drop_incomplete_checkpoints)


async def test_a_sound_database_loses_nothing_even_if_threads_were_pruned(stage: Stage) -> None:
    sound = await _dropped(stage)
    async with await Database.open(stage.database) as database:
        await CheckpointSaver(database).prune_thread(THREAD, 1)

    assert (sound, await _dropped(stage)) == ({}, {})


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE checkpoints SET checkpoint = x'00ff' WHERE checkpoint_id = '{}'",
        "DELETE FROM checkpoints WHERE checkpoint_id = '{}'",
        "DELETE FROM writes WHERE checkpoint_id = '{}' AND channel = 'messages'",
        "UPDATE writes SET value = x'c1' WHERE checkpoint_id = '{}' AND channel = 'messages'",
    ],
)
async def test_checkpoints_that_depend_on_something_lost_are_dropped(stage: Stage, harm: str) -> None:
    async with await Database.open(stage.database) as database:
        [[place]] = await rows(
            database,
            "SELECT max(checkpoint_id) FROM writes WHERE channel = 'messages' AND checkpoint_id < "
            "(SELECT max(checkpoint_id) FROM checkpoints)",
        )

    dropped = await _dropped(stage, harm.format(place))

    left = checkpoints(stage)
    async with await Database.open(stage.database) as database:
        saver = CheckpointSaver(database)
        await saver.rebuild_projections(THREAD)
        head = (await content_of(database, "threads"))["threads"][0][7]
    assert dropped[THREAD] >= 1
    assert (head, await _dropped(stage)) == (left[-1], {})
    assert left[-1] <= place


async def test_every_call_stays_in_the_call_log_when_its_checkpoints_are_gone(
    stage: Stage,
) -> None:
    async with await Database.open(stage.database) as database:
        before = await rows(database, "SELECT call_id, status FROM call_log ORDER BY 1")
        await execute(database, "DELETE FROM checkpoints WHERE rowid > 1")
        saver = CheckpointSaver(database)
        await database.write(drop_incomplete_checkpoints)
        await saver.rebuild_projections(THREAD)

        assert await rows(database, "SELECT call_id, status FROM call_log ORDER BY 1") == before
