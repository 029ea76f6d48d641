"""One scenario per row of the edge table, on the real graph and a real database; a row without one fails."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from langchain_core.messages import AIMessage

from graph_agent.errors import ModelError
from graph_agent.graph import edges
from graph_agent.graph.edges import EDGES
from graph_agent.ports.model import ContextWindow
from graph_agent.ports.usage import Budget
from graph_agent.session.session import Session
from graph_agent.session.turn_result import TurnResult
from tests.fakes.scripted_model import ScriptedModel, calls, text
from tests.scenarios.stage import Stage

Play = Callable[[Session], Awaitable[TurnResult]]


async def say(session: Session) -> TurnResult:
    return await session.send("go")


async def approve_all(session: Session) -> TurnResult:
    rest = await session.send("go")
    for item in rest.questions:
        await session.decide(item.question, "approve")
    return await session.proceed()


async def say_then_stop(session: Session) -> TurnResult:
    await session.send("go")
    return await session.stop()


async def say_and_add(session: Session) -> TurnResult:
    await session.queue("and more", is_urgent=True)
    return await session.send("go")


async def say_twice(session: Session) -> TurnResult:
    await session.send("word " * 900)
    return await session.send("word " * 900)


async def say_twice_then_compact(session: Session) -> TurnResult:
    await say_twice(session)
    return await session.compact()


class Scenario(NamedTuple):
    replies: Sequence[AIMessage | Exception]
    play: Play
    status: str
    window: ContextWindow = ContextWindow(can_summarize=False)


SMALL = ContextWindow(2_000, "set", reserve=0, can_summarize=False)


LARGE = AIMessage(
    "",
    tool_calls=[{"id": "r", "name": "read_a", "args": {}}],
    usage_metadata={"input_tokens": 900, "output_tokens": 200, "total_tokens": 1_100},
)
READS = calls(("r", "read_a"), ("s", "read_a"))
READ, WRITE = calls(("r", "read_a")), calls(("w", "write_a"))
SCENARIOS: dict[tuple[str, str], Scenario] = {
    ("START", "input"): Scenario([text("hi")], say, "done"),
    ("reasoning", "called"): Scenario([READ, text("done")], say, "done"),
    ("reasoning", "answered"): Scenario([text("hi")], say, "done"),
    ("reasoning", "compacted"): Scenario([AIMessage("hi"), AIMessage("done")], say_twice, "done", SMALL),
    ("reasoning", "shortened"): Scenario([text("hi"), text("hi")], say_twice_then_compact, "done"),
    ("reasoning", "steered"): Scenario([text("hi")], say_and_add, "done"),
    ("reasoning", "stopped"): Scenario([ModelError("down")], say_then_stop, "stopped"),
    ("reasoning", "limit"): Scenario([LARGE], say, "limit"),
    ("tool_routing", "marked"): Scenario([READ, text("done")], say, "done"),
    ("tool_routing", "asked"): Scenario([WRITE], say, "awaiting_approval"),
    ("tool_routing", "settled"): Scenario([calls(("d", "deny_a")), text("done")], say, "done"),
    ("human_approval", "answered"): Scenario([WRITE, text("done")], approve_all, "done"),
    ("human_approval", "stopped"): Scenario([WRITE], say_then_stop, "stopped"),
    ("tool_execution", "ended"): Scenario([READS, text("done")], say, "done"),
    ("tool_execution", "settled"): Scenario([READ, text("done")], say, "done"),
    ("observation", "observed"): Scenario([READ, text("done")], say, "done"),
    ("observation", "completed"): Scenario([calls(("c", "attempt_completion"))], say, "done"),
    ("observation", "limit"): Scenario([calls((f"r{n}", "read_a")) for n in range(9)], say, "limit"),
    ("observation", "stopped"): Scenario([WRITE], say_then_stop, "stopped"),
}


def test_every_row_has_a_scenario() -> None:
    assert set(SCENARIOS) == {(edge.source, edge.outcome) for edge in EDGES}


@pytest.mark.parametrize("row", SCENARIOS, ids=" ".join)
async def test_the_scenario_takes_its_row_and_comes_to_the_rest_it_should(
    row: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, taken = SCENARIOS[row], [("START", "input")]

    class Recorded(dict[tuple[str, str], str]):
        def __getitem__(self, key: tuple[str, str]) -> str:
            taken.append(key)
            return super().__getitem__(key)

    monkeypatch.setattr(edges, "TARGETS", Recorded(edges.TARGETS))
    model, budget = ScriptedModel(*scenario.replies), Budget(max_tokens=1_000)
    stage = Stage(tmp_path / "a.db", model, max_steps=3, budget=budget, window=scenario.window)
    async with stage.open_session() as session:
        rest = await scenario.play(session)

    assert (row in taken, rest.status) == (True, scenario.status)
