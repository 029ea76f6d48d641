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


async def test_an_idle_thread_can_be_compacted_and_keeps_its_last_answer(tmp_path: Path) -> None:
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


async def test_a_checkpoint_before_a_compaction_has_the_full_context(tmp_path: Path) -> None:
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


async def test_a_compaction_killed_at_its_end_is_completed_by_the_next_run(
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


def test_a_running_session_switches_only_to_known_modes_and_not_to_bypass_permissions() -> None:
    assert require_selectable_mode("plan") == "plan"
    with pytest.raises(UsageError, match="Unknown mode 'yolo'"):
        require_selectable_mode("yolo")
    with pytest.raises(UsageError, match="chosen at the start"):
        require_selectable_mode("bypassPermissions")
