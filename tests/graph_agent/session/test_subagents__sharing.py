from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from graph_agent.session.session import Session
from graph_agent.session.subagents import usage_of
from graph_agent.session.turn_result import TurnResult
from tests.fakes.scripted_model import calls, text
from tests.scenarios.family import Family, TaskModel

_LS = calls(("l1", "ls", {}))
_BOTH = calls(
    ("c1", "new_task", {"prompt": "ALPHA", "description": "first"}), ("c2", "new_task", {"prompt": "BETA"})
)
_ONE = calls(("c1", "new_task", {"prompt": "ALPHA", "description": "first"}))


def _work(steps: int, end: str) -> list[AIMessage]:
    return [*[_LS] * steps, text(end)]


def _used(message: AIMessage, tokens: int = 10_000) -> AIMessage:
    usage = {"input_tokens": tokens, "output_tokens": 0, "total_tokens": tokens}
    return message.model_copy(update={"usage_metadata": usage})


def _family(folder: Path, replies: dict[str, list[AIMessage]], **settings: Any) -> Family:
    model = TaskModel({word: [_used(message) for message in given] for word, given in replies.items()})
    return Family(folder, model, settings=settings)


async def _gone_on(session: Session, rest: TurnResult) -> tuple[TurnResult, int]:
    """Let it go on at each limit; the last rest, and how many there were."""
    limits = 0
    while rest.status == "limit":
        limits += 1
        rest = await session.continue_turn()
    return rest, limits


async def test_sub_agents_at_once_make_no_more_requests_together_than_their_parent_may(tmp_path: Path) -> None:
    replies = {
        "ALPHA": [_LS] * 5 + [text("alpha")],
        "BETA": [_LS] * 5 + [text("beta")],
        "go": [_BOTH, text("done")],
    }
    family = _family(tmp_path, replies)

    async with family.life(max_steps=7) as session:
        limit = await session.send("go")
        asked = len(family.model.requests)
        rest, more = await _gone_on(session, limit)

    assert (limit.status, limit.budget, asked) == ("limit", "max_steps", 7)
    assert "as many as max_steps allows" in str(limit.error)
    assert (rest.status, rest.answer, more <= 2, len(family.model.requests)) == ("done", "done", True, 14)
    assert [told for kind, told in family.model.told("go") if kind == "tool"] == ["alpha", "beta"]


async def test_sub_agents_at_once_share_the_tokens_of_the_turn_and_go_on_in_another_life(tmp_path: Path) -> None:
    replies = {
        "ALPHA": [_LS] * 4 + [text("alpha")],
        "BETA": [_LS] * 4 + [text("beta")],
        "go": [_BOTH, text("done")],
    }
    family = _family(tmp_path, replies, max_tokens=65_000)

    async with family.life() as session:
        limit = await session.send("go")
        asked = len(family.model.requests)
    async with family.life() as session:
        opened = await session.start()
        unasked = len(family.model.requests)
        rest, _ = await _gone_on(session, opened)

    assert (limit.status, limit.budget, opened.status, asked, unasked) == ("limit", "max_tokens", "limit", 7, 7)
    assert (rest.status, rest.answer, rest.thread_usage["total_tokens"]) == ("done", "done", 120_000)
    assert set(family.statuses().values()) == {"success"}


async def test_what_is_used_below_a_sub_agent_counts_for_all_above_it_at_once(tmp_path: Path) -> None:
    deeper = calls(("c1", "new_task", {"prompt": "BETA"}))
    replies = {"ALPHA": [deeper, text("alpha")], "BETA": [_LS] * 6 + [text("beta")], "go": [_ONE, text("done")]}
    family = _family(tmp_path, replies, max_tokens=45_000)

    async with family.life() as session:
        limit = await session.send("go")
        asked = len(family.model.requests)
        rest, _ = await _gone_on(session, limit)

    assert (limit.status, limit.budget, asked) == ("limit", "max_tokens", 5)
    assert (rest.status, rest.answer, rest.thread_usage["total_tokens"]) == ("done", "done", 110_000)


async def test_a_budget_of_the_thread_stays_used_up_until_it_is_raised(tmp_path: Path) -> None:
    replies = {"ALPHA": [_LS] * 4 + [text("alpha")], "go": [_ONE, text("done")]}
    family = _family(tmp_path, replies, max_thread_tokens=35_000)

    async with family.life() as session:
        limit = await session.send("go")
        again = await session.continue_turn()
        asked = len(family.model.requests)
    family.settings = {"max_thread_tokens": 500_000}
    async with family.life() as session:
        await session.start()
        rest = await session.continue_turn()

    assert (limit.status, again.status, again.budget, asked) == ("limit", "limit", "max_thread_tokens", 4)
    assert (rest.status, rest.answer) == ("done", "done")


async def test_a_message_after_a_shared_limit_ends_what_works_and_begins_a_turn_with_a_budget_of_its_own(
    tmp_path: Path,
) -> None:
    deeper, other = calls(("c1", "new_task", {"prompt": "GAMMA"})), calls(("c2", "new_task", {"prompt": "BETA"}))
    replies = {
        "ALPHA": [deeper],
        "GAMMA": [_LS] * 4,
        "BETA": [_LS, text("beta")],
        "go": [_ONE, other, text("instead")],
    }
    family = _family(tmp_path, replies, max_tokens=35_000)

    async with family.life() as session:
        limit = await session.send("go")
        rest = await session.send("do this instead")

    assert (limit.status, limit.usage["total_tokens"], limit.thread_usage["requests"]) == ("limit", 40_000, 4)
    assert (rest.status, rest.answer, rest.usage["total_tokens"]) == ("done", "instead", 40_000)
    assert rest.thread_usage["total_tokens"] == 80_000
    assert family.statuses() == {"new_task 1": "success"}


@pytest.mark.parametrize("steps", [1, 3])
async def test_steps_that_only_its_own_order_limits_end_a_sub_agent_and_not_the_turn(
    tmp_path: Path, steps: int
) -> None:
    task = calls(("c1", "new_task", {"prompt": "ALPHA", "max_steps": steps}))
    family = _family(tmp_path, {"ALPHA": [_LS] * 4, "go": [task, text("done")]})

    async with family.life(max_steps=20) as session:
        rest = await session.send("go")

    assert (rest.status, family.model.count("ALPHA")) == ("done", steps)


def test_what_a_thread_used_tells_of_calls_that_have_ended_before_the_model_is_told_of_them() -> None:
    def call(status: str, requests: int) -> dict[str, Any]:
        return {"call_id": status, "status": status, "metadata": {"usage": {"requests": requests}}}

    asked = calls(("success", "new_task", {}), ("interrupted", "new_task", {}))
    records = {"success": call("success", 4), "interrupted": call("interrupted", 8)}
    values = {"messages": [asked], "calls": records, "turn": {"usage": {"requests": 1}}, "usage": {"requests": 2}}

    assert usage_of(values) == ({"requests": 5}, {"requests": 6})
