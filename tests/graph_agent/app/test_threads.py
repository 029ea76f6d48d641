from collections.abc import Sequence
from pathlib import Path

import pytest

from graph_agent.app.reader import read_database
from graph_agent.app.threads import delete
from graph_agent.config.paths import blob_dir
from graph_agent.errors import ThreadHeld, UnknownId, UsageError
from graph_agent.inspect import ThreadSummary
from graph_agent.storage.blobs import FileBlobs
from tests.fakes.scripted_model import ScriptedModel, text
from tests.scenarios.stage import THREAD, Stage

_OTHER = "another-thread"


@pytest.fixture
async def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path / "agent.db", ScriptedModel())
    for thread_id in (THREAD, _OTHER):
        stage.model = ScriptedModel(text("x" * 200_000))
        async with stage.life(thread=thread_id) as session:
            await session.send("hello")
    return stage


def ids(stage: Stage) -> list[str]:
    with read_database(stage.database) as reader:
        return sorted(thread.thread_id for thread in reader.threads())


async def test_a_deleted_thread_is_gone_with_its_spools_and_gives_its_space_back(stage: Stage) -> None:
    blobs = FileBlobs(blob_dir(stage.database))
    spools = [blobs.spool(thread_id, "c", 1) for thread_id in (THREAD, _OTHER)]
    for spool in spools:
        spool.write_text("output")
    size = stage.database.stat().st_size
    asked: list[ThreadSummary] = []

    def consents(threads: Sequence[ThreadSummary]) -> bool:
        asked.extend(threads)
        return True

    done = await delete(stage.database, [THREAD, "read-1"], consents)

    assert [thread.thread_id for thread in done.threads] == [thread.thread_id for thread in asked] == [THREAD]
    assert (ids(stage), [spool.exists() for spool in spools]) == ([_OTHER], [False, True])
    assert stage.database.stat().st_size < size - 200_000
    with read_database(stage.database) as reader:
        assert [hit.thread_id for hit in reader.search("hello")] == [_OTHER]


async def test_nothing_goes_without_consent(stage: Stage) -> None:
    done = await delete(stage.database, [THREAD], lambda _: False)

    assert (done.threads, ids(stage)) == ((), [_OTHER, THREAD])


async def test_a_thread_that_is_held_is_refused_and_with_it_all_the_others(stage: Stage) -> None:
    async with stage.life():
        with pytest.raises(ThreadHeld, match="is open in another process"):
            await delete(stage.database, [_OTHER, THREAD], lambda _: True)

    assert ids(stage) == [_OTHER, THREAD]


@pytest.mark.parametrize(("text", "error"), [("", UsageError), ("nowhere", UnknownId)])
async def test_no_thread_goes_by_a_name_that_is_not_its_own(
    stage: Stage, text: str, error: type[UsageError]
) -> None:
    with pytest.raises(error):
        await delete(stage.database, [THREAD, text], lambda _: True)

    assert ids(stage) == [_OTHER, THREAD]


async def test_a_deleted_id_can_be_taken_again(stage: Stage) -> None:
    await delete(stage.database, [THREAD], lambda _: True)
    stage.model = ScriptedModel(text("anew"))

    async with stage.life() as session:
        rest = await session.send("begin")

    assert (rest.answer, len(stage.model.requests[0].messages)) == ("anew", 2)
