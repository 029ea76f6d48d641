from typing import Any

import pytest
from mcp.types import CallToolResult, ImageContent, TextContent, Tool, ToolAnnotations

from graph_agent.mcp.client import InvalidResult, parse_call_result, parse_tools


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


def test_content_that_nobody_knows_stands_as_its_json() -> None:
    blocks = [
        "bare",
        {"type": "hologram", "data": "ü"},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "text"},
    ]

    assert parse_call_result({"content": blocks, "isError": "yes"}) == CallToolResult(
        content=[
            TextContent(type="text", text="bare"),
            TextContent(type="text", text='{"type": "hologram", "data": "ü"}'),
            ImageContent(type="image", data="aGk=", mimeType="image/png"),
            TextContent(type="text", text='{"type": "text"}'),
        ]
    )


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ({"content": "x"}, CallToolResult(content=[TextContent(type="text", text="x")])),
        ({"structuredContent": {"a": 1}}, CallToolResult(content=[], structuredContent={"a": 1})),
        ({"content": [], "structuredContent": [1]}, CallToolResult(content=[])),
        ({"content": [], "isError": True}, CallToolResult(content=[], isError=True)),
    ],
)
def test_a_result_is_read_as_far_as_it_can_be(answer: dict[str, Any], result: CallToolResult) -> None:
    assert parse_call_result(answer) == result


@pytest.mark.parametrize("answer", [{}, {"content": None}, {"sense": 1}])
def test_what_is_no_result_is_not_taken_for_an_empty_one(answer: dict[str, Any]) -> None:
    with pytest.raises(InvalidResult, match="neither content nor structured content"):
        parse_call_result(answer)
