import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage

from graph_agent.ports import ModelRequest, OnDelta
from graph_agent.session.graph_runner import turn_outcome, turn_result_of
from graph_agent.session.turn_result import TurnResult
from tests.fakes.scripted_model import ScriptedModel
from tests.scenarios.stage import Stage


def test_only_a_result_at_a_limit_names_the_limit_and_whether_it_is_shared() -> None:
    turn = {"outcome": "limit", "budget": "max_tokens", "reason": "it was too much", "shared": True}
    values = {"turn": turn, "messages": [AIMessage("so far")]}
    error = "the turn was paused at a limit: it was too much"
    expected = TurnResult("limit", "t", "c", "so far", error=error, budget="max_tokens", is_shared=True)

    assert turn_result_of(turn_outcome(values), "t", "c", values) == expected
    assert turn_result_of("resumable", "t", "c", {"turn": turn}) == TurnResult("resumable", "t", "c")


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


async def test_a_model_request_is_interrupted_at_once_and_repeated_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graph_agent.session.graph_runner._GRACE_S", 3600)
    model = Thinking()
    stage = Stage(tmp_path / "a.db", model)
    async with stage.open_session() as session:
        await session.start()
        turn = asyncio.create_task(session.send("go"))
        await model.begun.wait()
        await session.shut_down()
        with suppress(asyncio.CancelledError):
            await turn
    async with stage.open_session() as later:
        found = await later.start()
        ended = await later.continue_turn()

    assert (turn.cancelled(), found.status, ended.answer) == (True, "resumable", "end")
    assert model.sent() == [("human", "go")]
