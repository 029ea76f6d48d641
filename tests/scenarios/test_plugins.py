import json
from pathlib import Path

from tests.cases.bench import Bench
from tests.fakes.openai_server import TC, TCS, TXT, FakeOpenAI

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
        assert "Plug-in not loaded: " in asked.err
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
    assert f"Plug-in not loaded: {told}" in done.err
    assert listed["problems"] == [told]
    assert [tool["risk"] for tool in listed["tools"] if tool["origin"] == "plugin"] == ["medium"]


_LATER = _TOOL.replace("class MyTool(BaseTool):", "class MyTool(BaseTool):\n    defer = True")


def test_a_deferred_tool_is_named_searched_for_and_declared_from_then_on_in_every_life(tmp_path: Path) -> None:
    script = [
        TC("c1", "my_tool", '{"wrong": 1}'),
        TC("c2", "tool_search", '{"query": "my_tool"}'),
        TC("c3", "my_tool", '{"file_path": "a"}'),
        TXT("ok"),
        TXT("later"),
    ]
    with FakeOpenAI(script, strict=True) as server:
        bench = Bench(tmp_path, server, {})
        bench.configure('tool_risk = {my_tool = "low"}\n')
        (bench.home / "tools").mkdir()
        (bench.home / "tools" / "mine.py").write_text(_LATER)

        bench.ask("go", "--thread", "t")
        again = bench.ask("more", "--thread", "t")

    available = [[tool["function"]["name"] for tool in body["tools"]] for body in server.bodies]
    assert [names[-2:] for names in available] == [
        ["tool_search", "new_task"],
        ["tool_search", "new_task"],
        ["new_task", "my_tool"],
        ["new_task", "my_tool"],
        ["new_task", "my_tool"],
    ]
    [search] = [tool for tool in server.bodies[0]["tools"] if tool["function"]["name"] == "tool_search"]
    assert "Deferred tools:\n- my_tool: what the model reads" in search["function"]["description"]
    assert "Call tool_search with its name to see its arguments." in bench.results(2)[0]
    assert bench.results(4)[1].startswith("You can call these tools from now on:\n\n## my_tool\n")
    assert (bench.results(4)[2], again.ending) == ("a False", (0, "later"))


_LOUD = _TOOL.replace(
    "        return", "        print('said')\n        os.write(1, b'written\\n')\n        return"
).replace("from pathlib", "import atexit, os\natexit.register(os.write, 1, b'goodbye\\n')\nfrom pathlib", 1)


def test_what_a_tool_prints_or_writes_to_descriptor_1_never_stands_in_the_output_of_a_run(tmp_path: Path) -> None:
    call = TC("c1", "my_tool", '{"file_path": "a"}')
    with FakeOpenAI([call, TXT("ok"), call, TXT("ok")], strict=True) as server:
        bench = Bench(tmp_path, server, {})
        bench.configure('tool_risk = {my_tool = "low"}\n')
        (bench.home / "tools").mkdir()
        (bench.home / "tools" / "mine.py").write_text(_LOUD)

        one = bench.ask("go", "--output", "json")
        many = bench.ask("go", "--output", "stream-json")

    assert (json.loads(one.out)["answer"], one.out.count("\n")) == ("ok", 1)
    assert [json.loads(line)["seq"] for line in many.out.splitlines()] == list(range(1, many.out.count("\n") + 1))
    assert all(word in one.err for word in ("said", "written", "goodbye"))


_LEAVES = _TOOL.replace(
    "    async def execute",
    """    def validate(self, args):
        if args["file_path"] == "leaves":
            raise SystemExit(7)
    async def execute""",
)


def test_a_plug_in_that_ends_the_program_when_it_is_asked_of_a_call_is_told_and_the_turn_goes_on(
    tmp_path: Path,
) -> None:
    calls = [("c1", "my_tool", {"file_path": "leaves"}), ("c2", "my_tool", {"file_path": "a"})]
    with FakeOpenAI([TCS(*calls), TXT("ok")], strict=True) as server:
        bench = Bench(tmp_path, server, {})
        bench.configure('tool_risk = {my_tool = "low"}\n')
        (bench.home / "tools").mkdir()
        (bench.home / "tools" / "mine.py").write_text(_LEAVES)

        ran = bench.ask("go")

    assert ran.ending == (0, "ok")
    assert bench.results(2) == [
        "Error: my_tool failed when it was asked about this call: SystemExit: 7. Nothing was done.",
        "a False",
    ]
