import asyncio
from pathlib import Path

from graph_agent.mcp.client import Signals, opened_conversation
from graph_agent.mcp.log import ServerLog
from tests.fakes.mcp_odd import TOOLS
from tests.fakes.mcp_servers import demo, odd


async def test_every_page_of_tools_is_read(tmp_path: Path) -> None:
    async with opened_conversation(odd(), tmp_path, ServerLog(tmp_path / "log"), Signals()) as talk:
        listed = [tool.name for tool in await talk.tools()]

    assert listed == [tool["name"] for tool in TOOLS]


async def test_a_change_of_the_tools_and_the_end_of_the_server_are_noticed(tmp_path: Path) -> None:
    signals, told = Signals(), []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    async with opened_conversation(demo(), tmp_path, ServerLog(tmp_path / "log"), signals) as talk:
        await talk.call("grow", {}, progress)
        await asyncio.wait_for(signals.changed.wait(), 5)
        await talk.call("slow", {"seconds": 0.1}, progress)
        is_lost_too_early = signals.lost.is_set()
        await asyncio.gather(talk.call("die", {}, progress), return_exceptions=True)
        await asyncio.wait_for(signals.lost.wait(), 5)

    assert (is_lost_too_early, told) == (False, ["step 0", "step 1"])
