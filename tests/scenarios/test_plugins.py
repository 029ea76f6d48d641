from pathlib import Path

from tests.cases.bench import Bench
from tests.fakes.openai_server import TC, TXT, FakeOpenAI

_TOOL = """
from pathlib import Path
from pydantic import BaseModel, Field
from tools.base import BaseTool, ToolResult, ToolRiskLevel

class MyToolArgs(BaseModel):
    file_path: str = Field(description="target, relative to the workspace")
    verbose: bool = Field(default=False, description="more detail")

class MyTool(BaseTool):
    name = "my_tool"
    description = "what the model reads"
    risk_level = ToolRiskLevel.LOW
    args_schema = MyToolArgs
    def __init__(self, *, workspace: str | Path | None = None) -> None: ...
    async def execute(self, *, file_path: str, verbose: bool = False) -> ToolResult:
        return ToolResult(f"{file_path} {verbose}", display="it was done")
"""


def test_the_tool_of_a_third_party_is_offered_judged_executed_and_told(tmp_path: Path) -> None:
    call = TC("c1", "my_tool", '{"file_path": "a", "verbose": "true"}')
    with FakeOpenAI([call, TXT("ok")], strict=True) as server:
        bench = Bench(tmp_path, server, {})
        bench.configure("")
        (bench.home / "tools").mkdir()
        (bench.home / "tools" / "mine.py").write_text(_TOOL)
        (bench.home / "tools" / "broken.py").write_text("print('noise')\nimport nowhere\n")

        asked = bench.ask("go", "--output", "json", "--thread", "t")
        done = bench.ask("--resume", "t", "--approve", "all")

        listed = bench.command.json("tools", "list")

    [declared] = [tool for tool in server.bodies[0]["tools"] if tool["function"]["name"] == "my_tool"]
    assert declared["function"] == {
        "name": "my_tool",
        "description": "what the model reads",
        "parameters": {
            "type": "object",
            "properties": {
                "file_path": {"type": "string", "description": "target, relative to the workspace"},
                "verbose": {"type": "boolean", "default": False, "description": "more detail"},
            },
            "required": ["file_path"],
            "additionalProperties": False,
        },
    }
    assert (asked.code, asked.out.startswith("{"), done.ending) == (3, True, (0, "ok"))
    assert bench.results(2) == ["a True"]
    told = f"{bench.home / 'tools' / 'broken.py'}: ModuleNotFoundError: No module named 'nowhere'"
    assert f"a plug-in is left out: {told}" in done.err
    assert listed["problems"] == [told]
    assert [tool["risk"] for tool in listed["tools"] if tool["origin"] == "plugin"] == ["medium"]
