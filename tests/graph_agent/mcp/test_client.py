import asyncio
from pathlib import Path
from typing import Any

import pytest
from mcp.types import CallToolResult, ImageContent, TextContent, Tool, ToolAnnotations

from graph_agent.mcp.client import InvalidResult, Signals, open_mcp_session, parse_call_result, parse_tools
from graph_agent.mcp.transport import ServerLog
from tests.fakes.mcp_odd import TOOLS
from tests.fakes.mcp_servers import demo, odd


async def test_every_page_of_tools_is_read(tmp_path: Path) -> None:
    async with open_mcp_session(odd(), tmp_path, ServerLog(tmp_path / "log"), Signals()) as talk:
        listed = [tool.name for tool in await talk.tools()]

    assert listed == [tool["name"] for tool in TOOLS]


@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("entry", "tool"),
    [
        ({"name": "t"}, Tool(name="t", inputSchema={})),
        ({"name": "t", "inputSchema": None, "description": 3}, Tool(name="t", inputSchema={})),
        ({"name": "t", "inputSchema": True, "title": []}, Tool(name="t", inputSchema={})),
        ({"name": "t", "inputSchema": {"type": 3}, "outputSchema": 4}, Tool(name="t", inputSchema={"type": 3})),
        ({"name": "t", "annotations": {"readOnlyHint": [1]}}, Tool(name="t", inputSchema={})),
        (
            {"name": "t", "annotations": {"readOnlyHint": True, "more": 1}},
            Tool(
                name="t",
                inputSchema={},
                annotations=ToolAnnotations.model_validate({"readOnlyHint": True, "more": 1}),
            ),
        ),
    ],
)
def test_a_tool_is_read_as_far_as_it_can_be(entry: dict[str, Any], tool: Tool) -> None:
    assert parse_tools({"tools": [3, {"name": ""}, {"name": None}, entry, None]}, 9) == [tool]


@pytest.mark.parametrize("page", [{}, {"tools": None}, {"tools": {"name": "t"}}])
def test_what_is_no_list_holds_no_tools(page: dict[str, Any]) -> None:
    assert parse_tools(page, 9) == []


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ({"content": "x"}, CallToolResult(content=[TextContent(type="text", text="x")])),
        ({"structuredContent": {"a": 1}}, CallToolResult(content=[], structuredContent={"a": 1})),
        ({"content": [], "structuredContent": [1]}, CallToolResult(content=[])),
        ({"content": [], "isError": True}, CallToolResult(content=[], isError=True)),
        (
            {
                "content": [
                    "bare",
                    {"type": "hologram", "data": "ü"},
                    {"type": "image", "data": "aGk=", "mimeType": "image/png"},
                    {"type": "text"},
                ],
                "isError": "yes",
            },
            CallToolResult(
                content=[
                    TextContent(type="text", text="bare"),
                    TextContent(type="text", text='{"type": "hologram", "data": "ü"}'),
                    ImageContent(type="image", data="aGk=", mimeType="image/png"),
                    TextContent(type="text", text='{"type": "text"}'),
                ]
            ),
        ),
    ],
)
def test_a_result_is_read_as_far_as_possible_and_unknown_content_becomes_json(
    answer: dict[str, Any], result: CallToolResult
) -> None:
    assert parse_call_result(answer) == result


@pytest.mark.parametrize("answer", [{}, {"content": None}, {"sense": 1}])
def test_what_is_no_result_is_not_taken_for_an_empty_one(answer: dict[str, Any]) -> None:
    with pytest.raises(InvalidResult, match="neither content nor structured content"):
        parse_call_result(answer)
