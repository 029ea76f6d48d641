"""What holds for every tool that `create_default_tools` makes.

The calls come from `EXAMPLE_CALLS` in the test file of each tool.
"""

import importlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from policy import DEFAULT_TOOL_RISK
from tests.contracts.example_calls import ExampleCalls
from tests.fakes.tool_ports import ImmediateSubAgents, ToolEnvironment
from tests.fakes.web_site import Answer, WebSite
from tools import create_default_tools
from tools.agent_ops.skill import Skill
from tools.base import (
    BaseTool,
    HostPermission,
    PathTarget,
    ToolContext,
    ToolDescription,
    ToolErrorType,
    ToolKind,
    ToolResult,
)
from tools.registry import ToolRegistry
from tools.running import execute, normalize_arguments
from tools.schema import InvalidArguments
from tools.shell_ops.background import NewOutput, ShellView, TooManyShells
from tools.shell_ops.background_tools import BashKillTool, BashListTool, BashOutputTool
from tools.shell_ops.shell_command import ShellCommand

_SNAPSHOT = Path(__file__).parent / "snapshots" / "tools.json"
_SKILLS = (Skill("release", "How to release.", "Tag.", Path("nowhere")),)
_TOOLS = {tool.name: tool for tool in create_default_tools(workspace=".", skills=_SKILLS)}
_PATH_ARGUMENTS = {"file_path", "path"}
_ERROR_TYPES = {kind.value for kind in ToolErrorType}


_SHELL = ShellView("sh1", "npm test", "exit code 0", is_running=False, output_bytes=3, unread_bytes=3, code=0)


class OneShell:
    """Background shells as tools see them, of which there is one that has ended; `spool` is what it wrote."""

    def __init__(self, spool: Path) -> None:
        self._spool = spool

    async def start(self, run: ShellCommand) -> ShellView:
        """Refuse."""
        raise TooManyShells(f"no room for {run.command}")

    async def read(self, context: ToolContext, shell_id: str) -> NewOutput | None:
        """All of it, again and again."""
        return NewOutput(_SHELL, self._spool, 0, 3) if shell_id == "sh1" else None

    async def all(self, context: ToolContext) -> list[ShellView]:
        """The one."""
        return [_SHELL]

    async def end(self, context: ToolContext, shell_id: str) -> ShellView | None:
        """It has ended already."""
        return await self.find(shell_id)

    async def find(self, shell_id: str) -> ShellView | None:
        """The one, by its id."""
        return _SHELL if shell_id == "sh1" else None


def _examples(tool: BaseTool) -> ExampleCalls:
    """From the test file of the tool: tools/file_ops/ls.py is tested in tests/tools/file_ops/test_ls.py."""
    package, _, module = type(tool).__module__.rpartition(".")
    examples: dict[str, ExampleCalls] = importlib.import_module(f"tests.{package}.test_{module}").EXAMPLE_CALLS
    return examples[tool.name]


@pytest.fixture
def around(tmp_path: Path) -> ToolEnvironment:
    around = ToolEnvironment(tmp_path)
    (around.workspace / "here.txt").write_text("here\n")
    (tmp_path / "outside.txt").write_text("outside\n")
    return around


@pytest.fixture(params=sorted(_TOOLS))
def tool(request: pytest.FixtureRequest, around: ToolEnvironment) -> BaseTool:
    return _made(around)[str(request.param)]


@pytest.fixture(scope="module")
def site() -> Iterator[WebSite]:
    with WebSite({"/": Answer(b"a page")}) as site:
        yield site


@pytest.fixture
def good(tool: BaseTool, site: WebSite) -> dict[str, Any]:
    """Arguments with which the tool does what it is there for."""
    return {"url": site.url()} if tool.name == "web_fetch" else dict(_examples(tool).good)


def _around_a_call(around: ToolEnvironment) -> ToolContext:
    return around.context(answer="9090", host_permission=lambda _: HostPermission(may_be_private=True))


def _made(around: ToolEnvironment) -> dict[str, BaseTool]:
    memory = around.workspace.parent / "memory" / "CONTEXT.md"
    agents = ImmediateSubAgents("ls", "bash")
    tools = create_default_tools(workspace=around.workspace, memory_file=memory, sub_agents=agents, skills=_SKILLS)
    made = {tool.name: tool for tool in tools}
    for tool in made.values():
        if isinstance(tool, BashOutputTool | BashListTool | BashKillTool):
            tool.shells = OneShell(around.workspace / "here.txt")
    return made


def _world(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_a_model_reads_of_the_tools_changes_only_on_purpose() -> None:
    registry = ToolRegistry()
    registry.register_all(create_default_tools(workspace=".", skills=_SKILLS))

    recorded = json.loads(_SNAPSHOT.read_text(encoding="utf-8"))
    names = {declaration["function"]["name"] for declaration in recorded}
    declared = [found for found in registry.declarations() if found["function"]["name"] in names]
    assert declared == recorded


def test_every_argument_is_described_and_policy_agrees_with_the_declared_risk(tool: BaseTool) -> None:
    schema = tool.args_schema.model_json_schema()

    assert isinstance(tool.description, ToolDescription)
    assert all(asdict(tool.description).values())
    assert [normalize_arguments(tool, one.params) for one in tool.description.examples]
    assert all(part.get("description") for part in schema["properties"].values())
    assert DEFAULT_TOOL_RISK.get(tool.name, tool.risk_level.value) == tool.risk_level.value


def test_tools_are_found_by_their_tags() -> None:
    registry = ToolRegistry()
    registry.register_all(_TOOLS.values())

    assert [name for name, tool in _TOOLS.items() if not tool.tags] == []
    assert {tool.name for tool in registry.by_tag("files")} == {
        *("edit_file", "glob", "grep", "ls", "read_file", "write_file")
    }
    assert {tool.name for tool in registry.by_tag("web")} == {"web_fetch"}


async def test_a_good_call_succeeds_and_its_result_survives_json(
    tool: BaseTool, good: dict[str, Any], around: ToolEnvironment
) -> None:
    result = await execute(tool, normalize_arguments(tool, good), _around_a_call(around))

    assert result.error is None
    assert result.output
    assert result.display
    assert json.loads(json.dumps(result.metadata)) == result.metadata


async def test_a_failure_is_a_value_with_a_kind_and_a_sentence(tool: BaseTool, around: ToolEnvironment) -> None:
    bad = _examples(tool).bad
    if bad is None:
        return
    result = await execute(tool, normalize_arguments(tool, bad), around.context())

    assert result.error is not None
    assert result.error.endswith(".")
    assert result.metadata["error_type"] in _ERROR_TYPES - {"unknown"}
    assert json.loads(json.dumps(result.metadata)) == result.metadata


async def test_a_call_without_its_arguments_is_refused_or_has_defaults(tool: BaseTool) -> None:
    required = tool.args_schema.model_json_schema().get("required", [])

    if required:
        with pytest.raises(InvalidArguments, match=f"{required[0]}: missing"):
            normalize_arguments(tool, {})
    else:
        assert normalize_arguments(tool, {}) == {}


async def test_a_call_is_planned_with_the_arguments_alone_that_it_needs(tool: BaseTool) -> None:
    required = tool.args_schema.model_json_schema().get("required", [])
    pair = {"old_string": "a", "new_string": "b"} if tool.name == "edit_file" else {}
    arguments = normalize_arguments(tool, {name: _examples(tool).good[name] for name in required} | pair)

    tool.targets(arguments)
    tool.signature(arguments)
    tool.is_concurrency_safe(arguments)

    assert (tool.validate(arguments), bool(tool.display_call(arguments))) == (None, True)


async def test_planning_a_call_changes_nothing_anywhere(
    tool: BaseTool, good: dict[str, Any], around: ToolEnvironment, tmp_path: Path
) -> None:
    arguments = normalize_arguments(tool, good)
    before = _world(tmp_path)

    tool.validate(arguments)
    tool.targets(arguments)
    shown = await tool.preview(arguments, around.context())
    await tool.predict_effect(arguments, around.context())

    assert _world(tmp_path) == before
    assert (shown is None) is tool.is_read_only(arguments)
    assert tool.suggest_rule(arguments).startswith(tool.name)
    assert "\n" not in tool.display_call(arguments)


async def test_a_read_only_tool_writes_nothing_and_no_tool_writes_outside(
    tool: BaseTool, good: dict[str, Any], around: ToolEnvironment, tmp_path: Path
) -> None:
    before = _world(tmp_path)

    await execute(tool, normalize_arguments(tool, good), _around_a_call(around))

    changed = {name for name, data in _world(tmp_path).items() if before.get(name) != data}
    allowed = _examples(tool).writes_in
    assert changed == set() if tool.is_read_only(good) else all(name.startswith(allowed) for name in changed)


def test_a_tool_that_touches_files_says_which(tool: BaseTool, good: dict[str, Any]) -> None:
    arguments = normalize_arguments(tool, good)

    targets = [target for target in tool.targets(arguments) if isinstance(target, PathTarget)]

    if tool.kind is ToolKind.WRITE and not tool.is_read_only(arguments):
        expected = ["edit" if tool.name == "edit_file" else "write"]
    else:
        expected = ["read"] if _PATH_ARGUMENTS & tool.args_schema.model_fields.keys() else []
    assert [target.access for target in targets] == expected


async def test_a_tool_works_without_a_context_unless_it_needs_more(
    tool: BaseTool, good: dict[str, Any], around: ToolEnvironment
) -> None:
    made = _made(around)[tool.name]

    result = await made.execute(**good)

    assert isinstance(result, ToolResult)
    assert (result.error is not None) is _examples(tool).needs_context
