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


def test_a_rest_at_a_limit_tells_which_one_and_whether_others_share_it() -> None:
    turn = {"outcome": "limit", "budget": "max_tokens", "reason": "it was too much", "shared": True}
    values = {"turn": turn, "messages": [AIMessage("so far")]}

    assert turn_result_of(turn_outcome(values), "t", "c", values) == TurnResult(
        "limit",
        "t",
        "c",
        "so far",
        error="the turn was paused at a limit: it was too much",
        budget="max_tokens",
        is_shared=True,
    )


def test_another_rest_says_nothing_of_the_limit_that_its_turn_came_to_before() -> None:
    values = {"turn": {"outcome": "limit", "budget": "max_tokens", "reason": "it was too much", "shared": True}}

    assert turn_result_of("resumable", "t", "c", values) == TurnResult("resumable", "t", "c")


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
