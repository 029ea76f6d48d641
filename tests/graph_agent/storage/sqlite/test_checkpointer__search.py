from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig

from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database
from tests.graph_agent.storage.sqlite.small_graph import config_of


async def _fill(saver: CheckpointSaver) -> None:
    for number in range(1, 5):
        checkpoint: Any = {"v": 4, "id": str(number), "ts": "2026-01-01T00:00:00+00:00", "channel_values": {}}
        metadata: Any = {"step": number, "source": "loop" if number % 2 else "input", "o'dd \"name": [number]}
        await saver.aput(config_of("even" if number % 2 == 0 else "odd"), checkpoint, metadata, {})


async def _ids(saver: CheckpointSaver, config: RunnableConfig | None, **options: Any) -> list[str]:
    return [found.checkpoint["id"] async for found in saver.alist(config, **options)]


@pytest.mark.parametrize(
    ("config", "options", "expected"),
    [
        (None, {}, ["4", "3", "2", "1"]),
        (config_of("odd"), {}, ["3", "1"]),
        (None, {"limit": 2}, ["4", "3"]),
        (None, {"limit": 0}, []),
        (None, {"filter": {"source": "input"}}, ["4", "2"]),
        (None, {"filter": {"source": "input", "step": 2}}, ["2"]),
        (None, {"filter": {"absent": None}}, []),
        (None, {"filter": {"o'dd \"name": [3]}}, ["3"]),
        (None, {"filter": {"step') OR 1=1 --": 1}}, []),
        (config_of("odd"), {"before": {"configurable": {"thread_id": "odd", "checkpoint_id": "3"}}}, ["1"]),
    ],
)
async def test_a_listing_holds_what_was_asked_for_newest_first(
    database: Database, config: RunnableConfig | None, options: dict[str, Any], expected: list[str]
) -> None:
    saver = CheckpointSaver(database)
    await _fill(saver)

    assert await _ids(saver, config, **options) == expected
