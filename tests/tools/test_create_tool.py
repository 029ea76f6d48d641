from pathlib import Path

import pytest
from pydantic import BaseModel

from tests.fakes.tool_ports import ToolSurroundings
from tools.base import ToolContext, ToolKind, ToolResult
from tools.create_tool import create_tool
from tools.running import execute


class Words(BaseModel):
    text: str
    times: int = 1


async def _shout(text: str, times: int = 1) -> str:
    return text.upper() * times


async def _where(text: str, times: int, context: ToolContext) -> ToolResult:
    return ToolResult(f"{text}{times} in {context.call_id}")


async def test_a_function_becomes_a_tool(tmp_path: Path) -> None:
    tool = create_tool("shout", "Shouts.", Words, _shout, kind=ToolKind.READONLY, tags=("loud",))

    result = await execute(tool, {"text": "ha", "times": 2}, ToolSurroundings(tmp_path).context())

    assert result == ToolResult("HAHA")
    assert (tool.name, tool.kind, tool.tags) == ("shout", ToolKind.READONLY, ("loud",))


async def test_a_function_that_declares_the_context_gets_it(tmp_path: Path) -> None:
    tool = create_tool("where", "Tells.", Words, _where)

    result = await execute(tool, {"text": "x"}, ToolSurroundings(tmp_path).context())

    assert result == ToolResult("x1 in c1")


def test_an_attribute_tools_do_not_have_is_refused() -> None:
    with pytest.raises(TypeError, match="no attribute colour"):
        create_tool("shout", "Shouts.", Words, _shout, colour="red")
