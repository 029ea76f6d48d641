from collections.abc import AsyncIterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from tests.fakes.tool_ports import ToolEnvironment
from tools.base import (
    BaseTool,
    FilesSearched,
    InterruptedCall,
    PathTarget,
    Progress,
    Reconciliation,
    ShellOutput,
    Target,
    ToolContext,
    ToolKind,
    ToolResult,
    ToolRiskLevel,
)
from tools.function_tool import create_tool
from tools.paths import PathRefused
from tools.plugins import declaration_problems
from tools.registry import ToolRegistry
from tools.result import ToolErrorType, failure
from tools.running import execute, normalize_arguments


class MyToolArgs(BaseModel):
    file_path: str = Field(description="target, relative to the workspace")
    verbose: bool = Field(default=False, description="more detail")


class MyTool(BaseTool):
    name = "my_tool"
    description = "what the model reads"
    risk_level = ToolRiskLevel.LOW
    args_schema = MyToolArgs

    def __init__(self, *, workspace: str | Path | None = None) -> None:
        self.place = workspace

    async def execute(self, *, file_path: str, verbose: bool = False) -> ToolResult:
        return ToolResult(f"{self.place}: {file_path} {verbose}")


class ContextTool(MyTool):
    name = "context_tool"
    kind = ToolKind.READONLY
    display_name = "Mine"

    def targets(self, args: object) -> list[Target]:
        return [PathTarget("src/a.py"), PathTarget("src/b.py")]

    async def execute(
        self, *, file_path: str, verbose: bool = False, context: ToolContext | None = None
    ) -> ToolResult:
        return ToolResult(f"{file_path} {verbose} {context.call_id if context else None}")


async def test_a_tool_written_as_the_contract_shows_is_offered_and_executed(tmp_path: Path) -> None:
    tool = MyTool(workspace="/somewhere")
    registry = ToolRegistry()
    registry.register(tool)

    declared = registry.declarations()
    arguments = normalize_arguments(tool, {"file_path": "a", "verbose": "true"})
    result = await execute(tool, arguments, ToolEnvironment(tmp_path).context())

    assert declared == [
        {
            "type": "function",
            "function": {
                "name": "my_tool",
                "description": "what the model reads",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "file_path": {"description": "target, relative to the workspace", "type": "string"},
                        "verbose": {"default": False, "description": "more detail", "type": "boolean"},
                    },
                    "required": ["file_path"],
                    "additionalProperties": False,
                },
            },
        }
    ]
    assert arguments == {"file_path": "a", "verbose": True}
    assert result == ToolResult("/somewhere: a True")


async def test_a_tool_that_declares_the_context_gets_it_and_the_schema_does_not_show_it(tmp_path: Path) -> None:
    tool = ContextTool()

    result = await execute(tool, {"file_path": "a"}, ToolEnvironment(tmp_path).context(call_id="c7"))

    assert result == ToolResult("a False c7")
    assert set((await tool.parameters())["properties"]) == {"file_path", "verbose"}
    # What rules and users see comes from the first target.
    assert (tool.suggest_rule({}), tool.display_call({})) == ("context_tool(src/a.py)", "Mine src/a.py")
    only_read = Reconciliation("not_applied", "context_tool only reads: nothing was changed.")
    assert await tool.reconcile(InterruptedCall({})) == only_read


async def test_defaults_hold_for_a_tool_that_declares_nothing_more() -> None:
    tool = MyTool()
    args = {"file_path": "a"}

    assert (tool.kind, tool.is_read_only(args), tool.is_concurrency_safe(args)) == (ToolKind.EXECUTE, False, False)
    assert (tool.targets(args), tool.signature(args), tool.suggest_rule(args)) == ([], "", "my_tool")
    assert tool.display_call(args) == "my_tool"
    assert (tool.validate(args), await tool.preview(args), await tool.predict_effect(args)) == (None, None, None)
    assert await tool.describe() == "what the model reads"
    assert (await tool.reconcile(InterruptedCall(args))).verdict == "unknown"


async def test_a_tool_without_a_context_keeps_its_own_file_states(tmp_path: Path) -> None:
    tool, other = MyTool(), ToolContext(Path("/w"))
    tool.workspace = tmp_path

    states = tool.context_or_default(None).file_states
    await states.set("t1", "/f", "d1")
    await states.set("t1", "/f", "d2")
    other.progress(ShellOutput("nobody listens"))
    other.cancellation.set()

    again = tool.context_or_default(None)
    assert (again.file_states, again.workspace) == (states, tmp_path.resolve())
    assert (await states.get("t1", "/f"), await states.get("t2", "/f")) == ("d2", None)
    assert (other.file_states is states, again.cancellation.is_set()) == (False, False)
    assert failure(ToolErrorType.TIMEOUT, "Too slow.\nMore.", output="half", exit_code=1) == ToolResult(
        "half", "Too slow.", "Too slow.\nMore.", {"error_type": "timeout", "exit_code": 1}
    )


def test_a_path_that_leads_elsewhere_than_when_it_was_judged_is_refused(tmp_path: Path) -> None:
    ws = tmp_path.resolve()
    (ws / "link").symlink_to("real")

    assert ToolContext(ws).resolve("link").path == ws / "real"
    assert ToolContext(ws, approved_paths=frozenset((ws / "real",))).resolve("link").path == ws / "real"
    with pytest.raises(PathRefused, match="now leads to"):
        ToolContext(ws, approved_paths=frozenset((ws / "link",))).resolve("link")


class Words(BaseModel):
    text: str
    times: int = 1


async def _shout(text: str, times: int = 1) -> str:
    return text.upper() * times


async def _where(text: str, times: int, context: ToolContext) -> ToolResult:
    return ToolResult(f"{text}{times} in {context.call_id}")


async def test_a_function_becomes_a_tool_and_gets_the_context_it_declares(tmp_path: Path) -> None:
    tool = create_tool("shout", "Shouts.", Words, _shout, kind=ToolKind.READONLY, tags=("loud",))
    where, context = create_tool("where", "Tells.", Words, _where), ToolEnvironment(tmp_path).context()

    assert await execute(tool, {"text": "ha", "times": 2}, context) == ToolResult("HAHA")
    assert (tool.name, tool.kind, tool.tags) == ("shout", ToolKind.READONLY, ("loud",))
    assert await execute(where, {"text": "x"}, context) == ToolResult("x1 in c1")
    with pytest.raises(TypeError, match="no attribute colour"):
        create_tool("shout", "Shouts.", Words, _shout, colour="red")


class Stepwise(BaseTool):
    name = "stepwise"
    args_schema = Words

    async def execute(self, *, text: str, times: int = 1) -> AsyncIterator[object]:  # type: ignore[override]  # with its progress
        for number in range(times):
            yield f"{text} {number}"
        yield FilesSearched(times)
        if times:
            yield ToolResult("done")
            raise AssertionError("nothing follows the result")


async def _steps(text: str, times: int, context: ToolContext) -> AsyncIterator[object]:
    yield context.call_id
    yield ToolResult(text * times)


@pytest.mark.parametrize("is_direct", [True, False])
@pytest.mark.parametrize(
    ("tool", "times", "progress", "output"),
    [
        (Stepwise(), 2, [ShellOutput("a 0"), ShellOutput("a 1"), FilesSearched(2)], "done"),
        (Stepwise(), 0, [FilesSearched(0)], "TypeError: execute ended without yielding a ToolResult"),
        (create_tool("steps", "Steps.", Words, _steps), 2, [ShellOutput("c1")], "aa"),
    ],
)
async def test_a_tool_may_yield_its_progress_and_then_its_result(
    tmp_path: Path, tool: BaseTool, times: int, progress: list[Progress], output: str, *, is_direct: bool
) -> None:
    reported: list[Progress] = []
    context = replace(ToolEnvironment(tmp_path).context(), progress=reported.append)

    arguments = {"text": "a", "times": times}
    result = (
        await tool.execute(**arguments, context=context) if is_direct else await execute(tool, arguments, context)
    )

    assert (reported, output in (result.error or result.output)) == (progress, True)
    assert declaration_problems(tool) in ("", "description = '': a text or a ToolDescription is expected")


async def _fails(text: str, times: int) -> str:
    raise ValueError(text * times)


@pytest.mark.parametrize(
    ("arguments", "kind", "part"),
    [
        ({"text": "a"}, "unknown", "failed with an internal error: ValueError: a."),
        ({"times": 1}, "validation", "text: missing, expected string"),
        ({"text": "a", "times": "many"}, "validation", 'times: got "many" (string), expected integer'),
        ({"text": "a", "colour": 1}, "validation", "unknown argument colour"),
    ],
)
async def test_a_tool_called_by_itself_or_through_a_registry_gives_a_result_for_every_failure(
    arguments: dict[str, Any], kind: str, part: str
) -> None:
    tool, registry = create_tool("fails", "Fails.", Words, _fails), ToolRegistry()
    registry.register(tool)

    for result in (await tool.execute(**arguments), await registry.execute("Fails", arguments)):
        assert (result.metadata["error_type"], part in str(result.error)) == (kind, True)


@pytest.mark.parametrize(
    ("package", "names"),
    [
        ("tools", "BaseTool ToolContext ToolRegistry ToolResult create_default_tools create_tool failure"),
        ("tools.file_ops", "EditFileTool GlobTool GrepTool LsTool ReadFileTool WriteFileTool"),
        (
            "tools.agent_ops",
            "AskUserTool AttemptCompletionTool NewTaskTool PresentPlanTool SaveMemoryTool SkillTool",
        ),
        ("tools.agent_ops", "TodoReadTool TodoWriteTool ToolSearchTool"),
        ("tools.shell_ops", "BashKillTool BashListTool BashOutputTool BashTool PowershellTool"),
        ("tools.web_ops", "WebFetchTool WebSearchTool"),
    ],
)
def test_the_names_of_the_contract_are_given_by_the_packages_themselves(package: str, names: str) -> None:
    module = import_module(package)

    assert [getattr(module, name).__name__ for name in names.split()] == names.split()
    assert set(names.split()) <= set(module.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = module.Nothing
