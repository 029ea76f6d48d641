from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig

from graph_agent.app.reader import read_database
from graph_agent.errors import UsageError
from graph_agent.session.session import require_selectable_mode
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from tests.fakes.scripted_model import calls, text
from tests.scenarios.outgrowing import Bulky, SummarizingModel, compactions, play, work
from tests.scenarios.stage import THREAD, Stage


async def test_by_hand_a_thread_is_compacted_at_rest_and_its_last_answer_stays(tmp_path: Path) -> None:
    model = SummarizingModel(*work(4, 3))
    stage = Stage(tmp_path / "a.db", model, Bulky())
    await play(stage, 4)
    asked = len(model.requests)

    async with stage.open_session() as session:
        rest = await session.compact()
        again = await session.continue_turn()
        further = [await session.compact() for _ in range(3)]

    assert (rest.status, rest.answer, again.status, again.answer) == ("done", "done 3", "done", "done 3")
    assert ({end.answer for end in further}, len(model.requests)) == ({"done 3"}, asked)
    assert [event.method for event in compactions(stage)] == ["references", "summary"]


async def test_a_checkpoint_from_before_a_compaction_has_its_old_window_again(tmp_path: Path) -> None:
    model = SummarizingModel(*work(4, 3), text("once more"))
    stage = Stage(tmp_path / "a.db", model, Bulky())
    await play(stage, 4)
    before = model.requests[-1].messages
    async with stage.open_session() as session:
        checkpoint = (await session.start()).checkpoint_id
        await session.compact()

    async with stage.open_session(checkpoint=checkpoint) as session:
        await session.start()
        await session.send("go on")

    assert model.requests[-1].messages[: len(before)] == before
    with read_database(stage.database) as reader:
        shown = [entry.role for entry in reader.transcript(THREAD)]
    assert (shown.count("tool"), "summary" in shown) == (12, False)


async def test_one_that_was_killed_at_its_very_end_is_taken_in_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path / "a.db", SummarizingModel(*work(4, 3)), Bulky())
    await play(stage, 4)
    put = CheckpointSaver.aput

    async def dying(saver: CheckpointSaver, *given: Any) -> RunnableConfig:
        if given[2]["step"] > last + 2:
            raise ConnectionAbortedError("killed here")
        return await put(saver, *given)

    with read_database(stage.database) as reader:
        last = reader.inspection(THREAD).state.metadata["step"]
    async with stage.open_session() as session:
        monkeypatch.setattr(CheckpointSaver, "aput", dying)
        with pytest.raises(ConnectionAbortedError):
            await session.compact()
        monkeypatch.setattr(CheckpointSaver, "aput", put)

    async with stage.open_session() as session:
        rest = await session.compact()

    assert (rest.status, rest.answer) == ("done", "done 3")
    assert [event.method for event in compactions(stage)][:1] == ["references"]


async def test_while_a_question_is_open_nothing_is_compacted(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "a.db", SummarizingModel(calls(("w", "write_a"))), Bulky())
    async with stage.open_session() as session:
        await session.send("write")

        with pytest.raises(UsageError, match="waits for answers about w"):
            await session.compact()


async def test_a_thread_without_a_conversation_has_nothing_to_compact(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "a.db", SummarizingModel(), Bulky())
    async with stage.open_session() as session:
        assert (await session.compact()).status == "done"

    assert compactions(stage) == []


@pytest.mark.parametrize(
    ("mode", "words"), [("yolo", "Unknown mode 'yolo'"), ("bypassPermissions", "chosen at the start")]
)
def test_a_mode_that_a_living_session_may_not_take_is_refused(mode: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        require_selectable_mode(mode)


def test_any_other_mode_may_be_taken() -> None:
    assert require_selectable_mode("plan") == "plan"
