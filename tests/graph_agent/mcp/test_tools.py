import asyncio
from pathlib import Path

import pytest
from mcp.types import Tool

from graph_agent.mcp.server import ManagedServer
from graph_agent.mcp.tools import McpTool
from graph_agent.ports import Scope
from graph_agent.toolbox.facts import PolicyContext, call_facts
from policy import PolicySettings, evaluate
from tests.cases.processes import running_with
from tests.fakes.mcp_servers import Harbour, demo, odd
from tools.base import McpProgress, Progress, ToolContext, ToolKind, ToolRiskLevel
from tools.registry import ToolRegistry


async def _called(
    registry: ToolRegistry, name: str, surroundings: ToolContext | None = None, /, **arguments: object
) -> str:
    tool = registry.instance(name, surroundings) if surroundings else registry.get(name)
    assert tool is not None
    result = await tool.execute(**arguments)
    return result.output or f"error: {result.error}"


async def test_tools_answer_fail_report_and_keep_their_own_arguments(tmp_path: Path) -> None:
    harbour, seen = Harbour(tmp_path), list[Progress]()
    context = ToolContext(tmp_path, progress=seen.append)
    async with harbour.fleet(demo=demo()) as fleet:
        await fleet.wait_until_ready()
        registry = harbour.registry
        told = [
            await _called(registry, "mcp__demo__ping", context, context="here"),
            await _called(registry, "mcp__demo__fail", context),
            await _called(registry, "mcp__demo__slow", context, seconds=0.1),
        ]

    assert told == ["pong here", "error: Error executing tool fail: not today", "slept"]
    assert seen == [McpProgress(0, 2.0, "step 0"), McpProgress(1, 2.0, "step 1")]


async def test_a_server_gets_a_minimal_environment_and_what_its_settings_add(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("OF_THE_AGENT", "value")
    harbour = Harbour(tmp_path)
    async with harbour.fleet(demo=demo(env={"OWN": "${OF_THE_AGENT}"})) as fleet:
        await fleet.wait_until_ready()
        names = (await _called(harbour.registry, "mcp__demo__environment")).split()

    assert ("OWN" in names, "PATH" in names, {"OPENAI_API_KEY", "OF_THE_AGENT"} & set(names)) == (True, True, set())


async def test_what_is_cancelled_is_cancelled_at_the_server_too(tmp_path: Path) -> None:
    harbour, trace = Harbour(tmp_path), tmp_path / "trace"
    async with harbour.fleet(demo=demo("--trace", str(trace))) as fleet:
        await fleet.wait_until_ready()
        call = asyncio.create_task(_called(harbour.registry, "mcp__demo__slow", seconds=30))
        await asyncio.sleep(0.2)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await _called(harbour.registry, "mcp__demo__ping")

    assert (call.cancelled(), trace.read_text().splitlines()[-1]) == (True, "cancelled")
    assert running_with(str(trace)) == []


async def test_a_failure_of_many_words_is_cut_where_results_are(tmp_path: Path) -> None:
    harbour = Harbour(tmp_path)
    async with harbour.fleet(odd=odd()) as fleet:
        await fleet.wait_until_ready()
        (running,) = fleet.servers
        tool = McpTool("mcp__odd__wails", Tool(name="wails", inputSchema={}), running)
        result = await tool.execute()

    assert result.error is not None
    assert (len(result.error) < 1_100, len(result.output)) == (True, 300_000)


@pytest.mark.parametrize(
    ("hints", "risk", "kind"),
    [
        (None, "high", "execute"),
        ({"readOnlyHint": True}, "medium", "readonly"),
        ({"readOnlyHint": True, "destructiveHint": True}, "high", "execute"),
        ({"destructiveHint": False}, "medium", "execute"),
        ({"destructiveHint": True}, "high", "execute"),
        ({"idempotentHint": True, "openWorldHint": False}, "high", "execute"),
    ],
)
def test_what_a_tool_says_of_itself_never_makes_it_run_unasked(
    tmp_path: Path, hints: dict[str, bool] | None, risk: str, kind: str
) -> None:
    around = Harbour(tmp_path).around
    running = ManagedServer("a", demo(), around, lambda _, tools: len(tools))
    listed = Tool.model_validate({"name": "t", "inputSchema": {}, "annotations": hints})

    tool = McpTool("mcp__a__t", listed, running)

    assert (str(tool.risk_level), str(tool.kind)) == (risk, kind)


async def test_a_server_is_believed_where_it_warns_and_its_words_are_bounded(tmp_path: Path) -> None:
    harbour = Harbour(tmp_path)
    async with harbour.fleet(demo=demo(), tame=demo(risk="low"), odd=odd()) as fleet:
        await fleet.wait_until_ready()
        ping, note, tame, strict = (
            harbour.registry.get(name)
            for name in ("mcp__demo__ping", "mcp__demo__note", "mcp__tame__note", "mcp__odd__strict")
        )
        assert ping is not None
        assert note is not None
        assert tame is not None
        assert strict is not None

    assert (ping.kind, ping.risk_level, ping.in_plan_mode) == (ToolKind.READONLY, ToolRiskLevel.MEDIUM, False)
    assert (note.kind, note.risk_level, tame.risk_level) == (
        ToolKind.EXECUTE,
        ToolRiskLevel.HIGH,
        ToolRiskLevel.LOW,
    )
    assert [tool.risk_is_configured for tool in (note, tame)] == [False, True]
    assert [
        evaluate(
            call_facts(
                tool, {"text": "t"}, Scope("t", "default"), PolicyContext(tmp_path, PolicySettings()), "mcp"
            ),
            PolicySettings(),
        ).verdict
        for tool in (note, tame)
    ] == ["ask", "allow"]
    assert len(str(strict.description)) == 4_001
    assert note.display_call({"text": "t" * 100}).endswith("…")
