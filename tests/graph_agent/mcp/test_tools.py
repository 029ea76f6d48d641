import asyncio
import base64
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.types import (
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
)
from pydantic import AnyUrl

from graph_agent.mcp.server import ManagedServer
from graph_agent.mcp.tools import (
    McpTool,
    ambiguous_servers,
    arguments_model,
    mcp_tool_name,
    offered_name,
    result_text,
    usable_schema,
    validate_arguments,
)
from graph_agent.ports import Scope
from graph_agent.toolbox.facts import PolicyContext, call_facts
from policy import PolicySettings, evaluate
from tests.cases.processes import running_with
from tests.fakes.mcp_servers import McpTestServers, demo, odd
from tools.base import McpProgress, Progress, ToolContext, ToolKind, ToolRiskLevel
from tools.registry import ToolRegistry
from tools.running import execute
from tools.schema import declared_parameters, parse_arguments


async def _called(
    registry: ToolRegistry, name: str, surroundings: ToolContext | None = None, /, **arguments: object
) -> str:
    tool = registry.instance(name, surroundings) if surroundings else registry.get(name)
    assert tool is not None
    result = await tool.execute(**arguments)
    return result.output or f"error: {result.error}"


@pytest.mark.slow
async def test_tools_answer_fail_report_and_keep_their_own_arguments(tmp_path: Path) -> None:
    harbour, seen = McpTestServers(tmp_path), list[Progress]()
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


@pytest.mark.slow
async def test_a_server_gets_a_minimal_environment_and_what_its_settings_add(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("OF_THE_AGENT", "value")
    harbour = McpTestServers(tmp_path)
    async with harbour.fleet(demo=demo(env={"OWN": "${OF_THE_AGENT}"})) as fleet:
        await fleet.wait_until_ready()
        names = (await _called(harbour.registry, "mcp__demo__environment")).split()

    assert ("OWN" in names, "PATH" in names, {"OPENAI_API_KEY", "OF_THE_AGENT"} & set(names)) == (True, True, set())


@pytest.mark.slow
async def test_what_is_cancelled_is_cancelled_at_the_server_too(tmp_path: Path) -> None:
    harbour, trace = McpTestServers(tmp_path), tmp_path / "trace"
    async with harbour.fleet(demo=demo("--trace", str(trace))) as fleet:
        await fleet.wait_until_ready()
        call = asyncio.create_task(_called(harbour.registry, "mcp__demo__slow", seconds=30))
        await asyncio.sleep(0.2)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await _called(harbour.registry, "mcp__demo__ping")

    assert (call.cancelled(), trace.read_text().splitlines()[-1]) == (True, "cancelled")
    assert running_with(str(trace)) == []


async def test_null_reaches_the_server(tmp_path: Path) -> None:
    harbour = McpTestServers(tmp_path)
    async with harbour.fleet(odd=odd()) as fleet:
        await fleet.wait_until_ready()
        tool = harbour.registry.get("mcp__odd__any")
        assert tool is not None
        result = await execute(tool, {"a": None, "b": {"c": [None]}}, ToolContext(tmp_path))

    assert json.loads(result.output) == ["any", {"a": None, "b": {"c": [None]}}]


async def test_a_failure_of_many_words_is_cut_where_results_are(tmp_path: Path) -> None:
    harbour = McpTestServers(tmp_path)
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
    around = McpTestServers(tmp_path).around
    running = ManagedServer("a", demo(), around, lambda _, tools: len(tools))
    listed = Tool.model_validate({"name": "t", "inputSchema": {}, "annotations": hints})

    tool = McpTool("mcp__a__t", listed, running)

    assert (str(tool.risk_level), str(tool.kind)) == (risk, kind)


@pytest.mark.slow
async def test_a_server_is_believed_where_it_warns_and_its_words_are_bounded(tmp_path: Path) -> None:
    harbour = McpTestServers(tmp_path)
    async with harbour.fleet(demo=demo(), tame=demo(risk="low"), odd=odd()) as fleet:
        await fleet.wait_until_ready()
        names = ("mcp__demo__ping", "mcp__demo__note", "mcp__tame__note", "mcp__odd__strict")
        ping, note, tame, strict = [tool for name in names if (tool := harbour.registry.get(name)) is not None]

    context = PolicyContext(tmp_path, PolicySettings())
    facts = [call_facts(tool, {"text": "t"}, Scope("t", "default"), context, "mcp") for tool in (note, tame)]
    assert (ping.kind, ping.risk_level, ping.in_plan_mode) == (ToolKind.READONLY, ToolRiskLevel.MEDIUM, False)
    assert (note.kind, note.risk_level, tame.risk_level) == (
        ToolKind.EXECUTE,
        ToolRiskLevel.HIGH,
        ToolRiskLevel.LOW,
    )
    assert [tool.risk_is_configured for tool in (note, tame)] == [False, True]
    assert [evaluate(one, context.policy).verdict for one in facts] == ["ask", "allow"]
    assert len(str(strict.description)) == 4_001
    assert note.display_call({"text": "t" * 100}).endswith("…")


_STRICT = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"properties": None}, {"type": "string"}])
def test_every_schema_is_offered_as_an_object_with_properties(schema: dict[str, object]) -> None:
    usable = usable_schema(schema)

    assert (usable["type"], usable["properties"]) == ("object", {})


def test_a_choice_between_objects_is_offered_as_all_their_properties_and_still_checked() -> None:
    one, other = ({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]} for name in "ab")
    schema = {"anyOf": [one, other], "properties": {"c": {"type": "integer"}}}

    assert usable_schema(schema) == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "integer"}},
    }
    assert [validate_arguments(schema, {"a": "x"}), bool(validate_arguments(schema, {"c": 1}))] == [None, True]


def test_a_schema_is_declared_whole_and_arguments_are_coerced_to_it_and_checked_field_by_field() -> None:
    schema = {**_STRICT, "additionalProperties": False, "$defs": {"a": {"type": "string"}}}
    parsed = parse_arguments(arguments_model(_STRICT), {"count": "3", "more": [1]})
    objections = [validate_arguments(_STRICT, {"count": count}) for count in ("many", 3)]

    assert declared_parameters(arguments_model(schema)) == schema
    assert parsed.model_dump() == {"count": 3, "more": [1]}
    invalid = "Invalid arguments: count: 'many' is not of type 'integer'. Correct them and try again."
    assert objections == [invalid, None]


@pytest.mark.parametrize(
    "odd",
    [
        {"properties": {"a": {"type": "no such type"}}},
        {"properties": {"a": {"$ref": "http://example.invalid/schema"}}},
        {"properties": {"a": {"$ref": "#/nowhere"}}},
        {"properties": {"a": {"$ref": "#/properties/a"}}},
        {"properties": {"a": {"$ref": "http://[no/address"}}},
    ],
)
def test_a_schema_nobody_can_read_complains_about_nothing_and_reaches_for_nothing(odd: dict[str, object]) -> None:
    assert validate_arguments(odd, {"a": 1}) is None


_ACCEPTED = re.compile(r"[A-Za-z0-9_-]{1,64}")


def test_names_are_spelled_as_providers_accept_them_and_taken_or_ambiguous_ones_get_a_hash() -> None:
    server, tool = "customer.data platform", "synchronize-all-customer-data-across-multiple-systems-and-regions"
    first = offered_name("s", "a b", ())
    alike = {offered_name("a", "b__c", ()), offered_name("a__b", "c", (), is_ambiguous=True)}

    assert offered_name("github", "get_issue", ()) == "mcp__github__get_issue"
    assert offered_name(server, tool, ()) == "mcp__customer_data_platform__synchronize-all-customer-d_12f56126"
    assert mcp_tool_name(server, tool) == f"mcp__{server}__{tool}"
    assert (first, offered_name("s", "a.b", {first})[:-8]) == ("mcp__s__a_b", "mcp__s__a_b_")
    assert len(alike) == 2
    assert ambiguous_servers(["a", "a__b", "ab", "a b", "a_b", "c"]) == {"a__b", "a_b"}


@given(st.lists(st.tuples(st.text(max_size=90), st.text(max_size=90)), unique=True, max_size=8))
def test_whatever_servers_call_their_tools_every_offered_name_is_accepted_and_no_two_are_alike(
    pairs: list[tuple[str, str]],
) -> None:
    names: list[str] = []
    for server, tool in pairs:
        names.append(offered_name(server, tool, names))

    assert all(_ACCEPTED.fullmatch(name) for name in names)
    assert len(set(names)) == len({mcp_tool_name(server, tool) for server, tool in pairs})


_DATA = base64.b64encode(b"123456").decode()


def test_text_is_shown_and_other_content_is_named() -> None:
    uri = AnyUrl("demo://a")
    result = CallToolResult(
        content=[
            TextContent(type="text", text="one"),
            ImageContent(type="image", data=_DATA, mimeType="image/png"),
            ResourceLink(type="resource_link", name="notes", uri=uri),
            EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, text="inside")),
            EmbeddedResource(type="resource", resource=BlobResourceContents(uri=uri, blob=_DATA)),
        ]
    )

    assert result_text(result).split("\n") == [
        "one",
        "[image/png, 6 bytes, not shown]",
        "[notes: demo://a]",
        "[demo://a]",
        "inside",
        "[demo://a, 6 bytes, not shown]",
    ]


def test_other_content_is_stored_where_that_is_possible() -> None:
    stored: list[bytes] = []

    def store(data: bytes) -> str:
        stored.append(data)
        return "blob:1"

    image = ImageContent(type="image", data=_DATA, mimeType="image/png")
    broken = ImageContent(type="image", data="A", mimeType="image/gif")

    text = result_text(CallToolResult(content=[image, broken]), store)

    assert text == "[image/png, 6 bytes, kept as blob:1]\n[image/gif, not shown: its data is not base64]"
    assert stored == [b"123456"]


@pytest.mark.parametrize(
    ("texts", "structured", "text"),
    [
        (['{"a": 1}'], {"a": 1}, '{"a": 1}'),
        (["plain"], {"result": "plain"}, "plain"),
        (["1", "2"], {"result": [1, 2]}, "1\n2"),
        (["3"], {"result": 3}, "3"),
        (["2 found"], {"ids": [1]}, '2 found\n{\n  "ids": [\n    1\n  ]\n}'),
        ([], {"a": "ü"}, '{\n  "a": "ü"\n}'),
        ([], None, ""),
    ],
)
def test_structured_content_is_shown_once(
    texts: list[str], structured: dict[str, object] | None, text: str
) -> None:
    content = [TextContent(type="text", text=one) for one in texts]

    assert result_text(CallToolResult(content=list(content), structuredContent=structured)) == text
