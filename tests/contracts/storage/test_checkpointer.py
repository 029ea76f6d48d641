"""The framework's own specification of a checkpointer, run over ours."""

from collections.abc import AsyncGenerator
from pathlib import Path
from tempfile import TemporaryDirectory

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate

from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database


@checkpointer_test(name="CheckpointSaver")
async def _saver() -> AsyncGenerator[BaseCheckpointSaver[str], None]:
    with TemporaryDirectory() as folder:
        async with await Database.open(Path(folder) / "data" / "agent.db") as database:
            yield CheckpointSaver(database)


async def test_every_capability_of_the_conformance_kit_is_offered_and_passes() -> None:
    report = await validate(_saver)

    outcomes = {
        name: (result.detected, result.tests_failed, result.failures) for name, result in report.results.items()
    }
    assert outcomes == dict.fromkeys(outcomes, (True, 0, []))
    assert len(outcomes) == 8
    assert report.passed_all_base()
