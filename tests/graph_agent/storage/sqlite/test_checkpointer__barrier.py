import asyncio
from typing import Any

from graph_agent.storage.sqlite.checkpointer import CheckpointSaver, SqliteBarrier
from graph_agent.storage.sqlite.database import Database
from tests.graph_agent.storage.sqlite.looking import statements_of
from tests.graph_agent.storage.sqlite.small_graph import config_of

_CHECKPOINT: Any = {"v": 4, "id": "1", "ts": "2026-01-01T00:00:00+00:00", "channel_values": {}}


async def test_a_checkpoint_that_stands_is_proven_with_one_look(database: Database) -> None:
    await CheckpointSaver(database).aput(config_of("t"), _CHECKPOINT, {}, {})
    seen = await statements_of(database)

    assert await SqliteBarrier(database).wait("t", "1") is True
    assert seen == ["SELECT"]


async def test_a_checkpoint_on_its_way_is_waited_for(database: Database) -> None:
    waiting = asyncio.create_task(SqliteBarrier(database).wait("t", "1"))
    await asyncio.sleep(0.03)
    was_early = waiting.done()

    await CheckpointSaver(database).aput(config_of("t"), _CHECKPOINT, {}, {})

    assert await waiting is True
    assert not was_early


async def test_a_checkpoint_that_never_comes_is_given_up(database: Database) -> None:
    assert await SqliteBarrier(database, timeout_s=0.02).wait("t", "1") is False


async def test_a_checkpoint_of_another_thread_proves_nothing(database: Database) -> None:
    await CheckpointSaver(database).aput(config_of("other"), _CHECKPOINT, {}, {})

    assert await SqliteBarrier(database, timeout_s=0).wait("t", "1") is False
