"""What is used is counted once, wherever a life ends, and a used-up budget pauses the turn, resumable."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from graph_agent.app.reader import read_database
from graph_agent.errors import ModelError
from graph_agent.ports.usage import Budget, Meter, Rate, usage_report
from tests.fakes.openai_replies import Reply
from tests.fakes.openai_server import TC, TXT
from tests.fakes.scripted_model import ScriptedModel, text
from tests.scenarios.command import scripted
from tests.scenarios.stage import Stage

_METER = Meter({"scripted": Rate(input=1_000, output=1_000)}, "EUR")


def reads(call_id: str, tokens: int) -> AIMessage:
    return AIMessage(
        "",
        tool_calls=[{"id": call_id, "name": "read_a", "args": {}}],
        usage_metadata={"input_tokens": tokens, "output_tokens": 0, "total_tokens": tokens},
    )


def euros(into: int, out: int, total: int, requests: int, cost: float) -> dict[str, Any]:
    counts = {"input_tokens": into, "output_tokens": out, "total_tokens": total, "requests": requests}
    return usage_report({**counts, "cost": cost, "currency": "EUR"})


async def test_usage_of_turn_and_thread_is_the_sum_of_the_stored_replies(tmp_path: Path) -> None:
    model = ScriptedModel(reads("c1", 100), ModelError("down"), text("done"), text("again"))
    stage = Stage(tmp_path / "a.db", model, meter=_METER)

    async with stage.open_session() as session:
        failed = await session.send("go")
    async with stage.open_session() as session:
        await session.start()
        first = await session.continue_turn()
        second = await session.send("more")

    with read_database(stage.database) as reader:
        [thread] = reader.threads()
    assert failed.usage == euros(100, 0, 100, 1, 0.1)
    assert first.usage == euros(110, 5, 115, 2, 0.115)
    assert second.usage == euros(10, 5, 15, 1, 0.015)
    assert usage_report(thread.usage) == euros(120, 10, 130, 3, 0.13)


@pytest.mark.parametrize(
    ("budget", "named"),
    [
        (Budget(max_tokens=1_000), "max_tokens"),
        (Budget(max_cost=1.0), "max_cost"),
        (Budget(max_thread_tokens=1_000), "max_thread_tokens"),
    ],
)
async def test_a_used_up_budget_pauses_before_the_next_request_and_names_itself(
    tmp_path: Path, budget: Budget, named: str
) -> None:
    model = ScriptedModel(reads("c1", 600), reads("c2", 500), text("done"))
    stage = Stage(tmp_path / "a.db", model, meter=_METER, budget=budget)

    async with stage.open_session() as session:
        rest = await session.send("go")

    assert (rest.status, rest.budget, len(model.requests)) == ("limit", named, 2)
    assert rest.error is not None
    assert f"that {named} allows" in rest.error


async def test_going_on_begins_with_a_fresh_budget_of_the_turn(tmp_path: Path) -> None:
    model = ScriptedModel(reads("c1", 1_200), text("done"))
    stage = Stage(tmp_path / "a.db", model, budget=Budget(max_tokens=1_000))

    async with stage.open_session() as session:
        paused = await session.send("go")
    async with stage.open_session() as session:
        await session.start()
        rest = await session.continue_turn()

    assert (paused.status, rest.status, rest.answer) == ("limit", "done", "done")
    assert model.sent() == [("human", "go"), ("ai", ""), ("tool", "result of c1")]


async def test_a_reply_that_ends_the_turn_is_not_paused_by_what_it_cost(tmp_path: Path) -> None:
    dear = AIMessage("done", usage_metadata={"input_tokens": 0, "output_tokens": 900, "total_tokens": 900})
    stage = Stage(tmp_path / "a.db", ScriptedModel(dear), meter=_METER, budget=Budget(max_cost=0.8))

    async with stage.open_session() as session:
        rest = await session.send("go")
        again = await session.send("more")

    assert (rest.status, again.status) == ("done", "done")


async def test_a_model_without_a_price_is_not_asked_where_costs_are_limited(tmp_path: Path) -> None:
    model = ScriptedModel()
    stage = Stage(tmp_path / "a.db", model, budget=Budget(max_cost=5.0))

    async with stage.open_session() as session:
        rest = await session.send("go")

    assert (rest.status, rest.budget, model.requests) == ("limit", "max_cost", [])


async def test_a_prompt_too_long_for_the_budget_is_not_sent(tmp_path: Path) -> None:
    model = ScriptedModel()
    stage = Stage(tmp_path / "a.db", model, budget=Budget(max_tokens=100))
    told: list[Any] = []

    async with stage.open_session() as session:
        rest = await session.send("word " * 1_000)
        told.append(rest.error)

    assert (rest.status, model.requests) == ("limit", [])
    assert "raise max_tokens to continue" in str(told)


def _failing(number: int) -> Reply:
    return TC(f"f{number}", "bash", {"command": "echo x >> tries; exit 1"})


def _late(number: int) -> Reply:
    return TC(f"l{number}", "bash", {"command": f"sleep 3{number}", "timeout": 0.2})


def _unknown(number: int) -> Reply:
    return TC(f"u{number}", "no_such_tool", {"number": number})


def _unknown_again(number: int) -> Reply:
    return TC(f"u{number}", "no_such_tool", {"number": 1})


@pytest.mark.parametrize(
    ("asking", "times", "why"),
    [
        (_failing, 4, "the same call of bash failed 3 times in a row"),
        (_late, 4, "bash ran into its time limit 3 times in a row"),
        (
            _unknown,
            5,
            "5 calls of no_such_tool in a row could not run: the tool is unknown or its arguments were invalid",
        ),
        (_unknown_again, 3, "the same call was refused 3 times"),
    ],
)
def test_a_run_that_goes_wrong_again_and_again_ends_at_a_limit_and_can_be_gone_on_with(
    asking: Callable[[int], Reply], times: int, why: str, tmp_path: Path
) -> None:
    script = [asking(number) for number in range(times)]
    with scripted(tmp_path, [*script, TXT("another way")]) as command:
        code, paused = command.run_json("go", "--thread", "t1", "--mode", "bypassPermissions")
        asked = len(command.server.bodies)
        later, done = command.run_json("--resume", "t1", "--mode", "bypassPermissions")

    assert (code, paused["status"], paused["error"]) == (5, "limit", f"the turn was paused at a limit: {why}")
    assert (asked, later, done["answer"]) == (times, 0, "another way")
    tries = command.workspace / "tries"
    assert not tries.exists() or tries.read_text() == "x\n" * 3
