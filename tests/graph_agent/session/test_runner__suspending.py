import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage

from graph_agent.ports import ModelRequest, OnDelta
from tests.fakes.scripted_model import ScriptedModel
from tests.scenarios.stage import Stage


class Thinking(ScriptedModel):
    """Gives no answer to its first request."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()

    async def reply(self, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        if not self.begun.is_set():
            self.begun.set()
            await asyncio.Event().wait()
        return await super().reply(request, on_delta)


async def test_a_request_to_the_model_is_broken_off_without_a_grace_and_made_again_in_the_next_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graph_agent.session.graph_runner._GRACE_S", 3600)
    model = Thinking()
    stage = Stage(tmp_path / "a.db", model)
    async with stage.life() as session:
        await session.start()
        turn = asyncio.create_task(session.send("go"))
        await model.begun.wait()
        await session.shut_down()
        with suppress(asyncio.CancelledError):
            await turn
    async with stage.life() as later:
        found = await later.start()
        ended = await later.continue_turn()

    assert (turn.cancelled(), found.status, ended.answer, model.told()) == (
        True,
        "resumable",
        "end",
        [("human", "go")],
    )
