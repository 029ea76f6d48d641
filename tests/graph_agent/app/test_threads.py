from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from graph_agent.app.reader import read_database
from graph_agent.app.threads import PruneOrder, delete, prune, rename, run_until_question
from graph_agent.config.paths import blob_dir
from graph_agent.errors import ThreadHeld, UnknownId, UsageError
from graph_agent.inspect import ThreadSummary
from graph_agent.session.turn_result import TurnResult, TurnStatus
from graph_agent.storage.blobs import FileBlobs
from tests.fakes.scripted_model import ScriptedModel, text
from tests.scenarios.stage import THREAD, Stage

_OTHER = "another-thread"
_TURNS = 8


async def _played(folder: Path, turns: int, answer: str) -> Stage:
    stage = Stage(folder / "agent.db", ScriptedModel())
    for thread_id in (THREAD, _OTHER):
        stage.model = ScriptedModel(*(text(answer) for _ in range(turns)))
        async with stage.open_session(thread=thread_id) as session:
            for number in range(turns):
                await session.send(f"hello {number}")
    return stage


@pytest.fixture
async def stage(tmp_path: Path) -> Stage:
    return await _played(tmp_path, 1, "x" * 200_000)


@pytest.fixture
async def long_stage(tmp_path: Path) -> Stage:
    return await _played(tmp_path, _TURNS, "some words of a long answer " * 700)


def ids(stage: Stage) -> list[str]:
    with read_database(stage.database) as reader:
        return sorted(thread.thread_id for thread in reader.threads())


def turns(stage: Stage, thread_id: str) -> int:
    with read_database(stage.database) as reader:
        return sum(entry.role == "user" for entry in reader.transcript(thread_id))


async def test_a_title_of_ones_own_stays_also_when_the_thread_continues(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "agent.db", ScriptedModel())
    async with stage.open_session() as session:
        await session.send("first words")
        renamed = await rename(stage.database, "read-1"[-4:], "  My\n plan ")
        await session.send("more words")

    with read_database(stage.database) as reader:
        assert (renamed, reader.thread(THREAD).title) == ((THREAD, "My plan"), "My plan")
    with pytest.raises(UsageError, match="title is blank"):
        await rename(stage.database, THREAD, " \t ")
    with pytest.raises(UnknownId):
        await rename(stage.database, "nowhere", "x")


async def test_a_deleted_thread_is_gone_with_its_spools_and_its_space_is_reclaimed(stage: Stage) -> None:
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


async def test_nothing_is_deleted_without_consent_by_a_wrong_name_or_while_one_thread_is_held(stage: Stage) -> None:
    refused = await delete(stage.database, [THREAD], lambda _: False)
    for name, error in (("", UsageError), ("nowhere", UnknownId)):
        with pytest.raises(error):
            await delete(stage.database, [THREAD, name], lambda _: True)
    async with stage.open_session():
        with pytest.raises(ThreadHeld, match="is open in another process"):
            await delete(stage.database, [_OTHER, THREAD], lambda _: True)

    assert (refused.threads, ids(stage)) == ((), [_OTHER, THREAD])


async def test_a_deleted_id_can_be_used_again(stage: Stage) -> None:
    await delete(stage.database, [THREAD], lambda _: True)
    stage.model = ScriptedModel(text("new"))

    async with stage.open_session() as session:
        result = await session.send("begin")

    assert (result.answer, len(stage.model.requests[0].messages)) == ("new", 2)


async def test_one_thread_is_pruned_and_stays_complete_and_resumable(long_stage: Stage) -> None:
    done = await prune(long_stage.database, PruneOrder(2, THREAD))

    [one] = done.threads
    assert (one.thread_id, one.checkpoints > 0, one.held_by) == (THREAD, True, "")
    assert done.bytes_after < done.bytes_before
    long_stage.model = ScriptedModel(text("more"))
    async with long_stage.open_session() as session:
        await session.start()
        result = await session.send("go on")
    assert (result.answer, turns(long_stage, THREAD), turns(long_stage, _OTHER)) == ("more", _TURNS + 1, _TURNS)
    assert len(long_stage.model.requests[0].messages) == 2 * _TURNS + 2


async def test_an_id_that_was_pruned_is_answered_with_the_next_one_left(long_stage: Stage) -> None:
    with read_database(long_stage.database) as reader:
        first = reader.transcript(THREAD)[0].checkpoint_id
    await prune(long_stage.database, PruneOrder(2, THREAD))

    with read_database(long_stage.database) as reader, pytest.raises(UnknownId) as refusal:
        reader.resolve(first)

    following = str(refusal.value).removesuffix(".").rpartition(" ")[2]
    with read_database(long_stage.database) as reader:
        state = reader.inspection(THREAD, following).state
    assert f"Checkpoint {first} of thread {THREAD} was pruned" in str(refusal.value)
    assert len(state.values["messages"]) == 2 * (_TURNS - 2) + 1


async def test_threads_that_are_held_or_too_young_are_not_pruned(long_stage: Stage) -> None:
    young = await prune(long_stage.database, PruneOrder(1, older_than=timedelta(days=1)))
    async with long_stage.open_session():
        done = await prune(long_stage.database, PruneOrder(1))

    by_thread = {one.thread_id: one for one in done.threads}
    assert (by_thread[THREAD].checkpoints, "is open in another process" in by_thread[THREAD].held_by) == (0, True)
    assert (young.threads, by_thread[_OTHER].checkpoints > 0) == ((), True)


async def test_a_size_that_cannot_be_reached_is_approached(long_stage: Stage) -> None:
    wide = await prune(long_stage.database, PruneOrder(_TURNS))

    narrow = await prune(long_stage.database, PruneOrder(_TURNS, max_bytes=1))

    assert wide.bytes_after == narrow.bytes_before > narrow.bytes_after
    assert {one.checkpoints > 0 for one in narrow.threads} == {True}


async def test_an_idle_thread_prunes_itself(long_stage: Stage) -> None:
    long_stage.keep_turns = 3
    long_stage.model = ScriptedModel(text("more"))
    async with long_stage.open_session() as session:
        await session.send("go on")

    assert (await prune(long_stage.database, PruneOrder(3, THREAD))).threads[0].checkpoints == 0
    assert turns(long_stage, THREAD) == _TURNS + 1


class Answered:
    """A session whose last question was answered while its open ones were gathered."""

    def __init__(self, *after: TurnResult) -> None:
        self.results = [TurnResult("awaiting_approval", THREAD, "1"), *after]

    async def start(self) -> TurnResult:
        return self.results.pop(0)

    async def recorded_answers(self) -> dict[str, object]:
        return {}

    async def proceed(self) -> TurnResult:
        return self.results.pop(0)

    async def send_queued(self) -> None:
        return None


@pytest.mark.parametrize("status", ["done", "awaiting_approval"])
async def test_a_thread_whose_questions_are_all_answered_is_continued_once_more(status: TurnStatus) -> None:
    session: Any = Answered(TurnResult(status, THREAD, "1"))

    result = await run_until_question(session, lambda: False)

    assert (result.status, session.results) == (status, [])
