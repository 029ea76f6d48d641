import asyncio
from pathlib import Path

from graph_agent.ports import PreparedCall, Scope
from tests.fakes.scripted_model import ScriptedModel, calls
from tests.fakes.scripted_toolbox import ScriptedToolbox
from tests.fakes.waiting import until
from tests.scenarios.stage import Stage


class _Thinking(ScriptedToolbox):
    """Its plans take until nobody wants them any more."""

    asked = 0

    async def prepare(
        self, tool_name: str, arguments: object, scope: Scope, call_id: str = "", attempt: int = 1
    ) -> PreparedCall:
        self.asked += 1
        await asyncio.sleep(60)
        raise AssertionError("nobody waits so long")


async def test_who_stops_the_turn_waits_for_no_tool_that_thinks_about_a_call(tmp_path: Path) -> None:
    toolbox = _Thinking()
    stage = Stage(tmp_path / "agent.db", ScriptedModel(calls(("w", "write_a"))), toolbox)
    async with stage.life() as session:
        turn = asyncio.create_task(session.send("go"))
        assert await until(lambda: toolbox.asked == 1)

        rest = await asyncio.wait_for(session.stop(), 10)
        await asyncio.wait({turn})

    assert rest.status == "stopped"
    assert toolbox.asked == 1
