from pathlib import Path

import pytest

from graph_agent.app.reader import read_database
from graph_agent.app.threads import rename
from graph_agent.errors import UnknownId, UsageError
from tests.fakes.scripted_model import ScriptedModel
from tests.scenarios.stage import THREAD, Stage


async def test_a_title_of_ones_own_stays_also_when_the_thread_goes_on(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "agent.db", ScriptedModel())
    async with stage.life() as session:
        await session.send("first words")
        renamed = await rename(stage.database, "read-1"[-4:], "  My\n plan ")
        await session.send("more words")

    with read_database(stage.database) as reader:
        assert (renamed, reader.thread(THREAD).title) == ((THREAD, "My plan"), "My plan")


async def test_a_blank_title_and_an_unknown_thread_are_refused(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "agent.db", ScriptedModel())
    async with stage.life() as session:
        await session.send("first words")

    with pytest.raises(UsageError, match="title is blank"):
        await rename(stage.database, THREAD, " \t ")
    with pytest.raises(UnknownId):
        await rename(stage.database, "nowhere", "x")
