import asyncio
from pathlib import Path

from graph_agent.mcp.client import Signals, open_mcp_session
from graph_agent.mcp.transport import ServerLog
from tests.fakes.mcp_odd import TOOLS
from tests.fakes.mcp_servers import demo, odd


async def test_every_page_of_tools_is_read(tmp_path: Path) -> None:
    async with open_mcp_session(odd(), tmp_path, ServerLog(tmp_path / "log"), Signals()) as talk:
        listed = [tool.name for tool in await talk.tools()]

    assert listed == [tool["name"] for tool in TOOLS]


async def test_changed_tools_and_a_lost_server_are_signalled(tmp_path: Path) -> None:
    signals, told = Signals(), []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    async with open_mcp_session(demo(), tmp_path, ServerLog(tmp_path / "log"), signals) as talk:
        await talk.call("grow", {}, progress)
        await asyncio.wait_for(signals.tools_changed.wait(), 5)
        await talk.call("slow", {"seconds": 0.1}, progress)
        is_lost_too_early = signals.lost.is_set()
        await asyncio.gather(talk.call("die", {}, progress), return_exceptions=True)
        await asyncio.wait_for(signals.lost.wait(), 5)

    assert (is_lost_too_early, told) == (False, ["step 0", "step 1"])
