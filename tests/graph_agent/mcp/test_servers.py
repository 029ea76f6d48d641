from pathlib import Path

import pytest

from graph_agent.mcp.settings import read_refused_tools
from tests.fakes.mcp_odd import TOOLS
from tests.fakes.mcp_servers import McpTestServers, demo, odd
from tests.fakes.waiting import until


@pytest.mark.slow
async def test_a_slow_server_delays_nobody_and_joins_when_it_is_ready(tmp_path: Path) -> None:
    harbour = McpTestServers(tmp_path)
    async with harbour.fleet(slow=demo("--wait", "6"), odd=odd()) as fleet:
        await fleet.wait(4.5)
        early = harbour.registry.names()
        await fleet.wait_until_ready()
        late = harbour.registry.names()

    assert (any("__slow__" in name for name in early), "mcp__odd__now" in early) == (False, True)
    assert "mcp__slow__ping" in late
    (warning,) = harbour.warnings
    assert warning.startswith("MCP servers not ready after 4.5 s (setting mcp_wait): slow. The run continues;")


async def test_every_tool_of_an_odd_server_is_offered_under_a_name_of_its_own_as_an_object(tmp_path: Path) -> None:
    harbour = McpTestServers(tmp_path)
    async with harbour.fleet(odd=odd()) as fleet:
        await fleet.wait_until_ready()
        declared = [item["function"] for item in harbour.registry.declarations()]

    assert len({item["name"] for item in declared}) == len(declared) == len(TOOLS)
    assert all(item["parameters"]["type"] == "object" and "properties" in item["parameters"] for item in declared)


async def test_a_tool_that_providers_would_refuse_is_left_out_with_one_warning(tmp_path: Path) -> None:
    harbour = McpTestServers(tmp_path)
    async with harbour.fleet(odd=odd("--broken")) as fleet:
        await fleet.wait_until_ready()

    (warning,) = harbour.warnings
    assert len(harbour.registry.names()) == len(TOOLS)
    assert warning.startswith(
        "MCP server 'odd' lists 1 tool with an invalid schema, left out: broken (properties.a"
    )
    assert list(read_refused_tools(tmp_path, "odd", odd("--broken"))) == ["broken"]
    assert read_refused_tools(tmp_path, "odd", odd()) == {}


async def test_tools_are_in_the_order_of_the_configuration_whichever_server_was_quicker(tmp_path: Path) -> None:
    harbour = McpTestServers(tmp_path)
    async with harbour.fleet(slow=odd("--wait", "0.3", tools=("any",)), quick=odd(tools=("now",))) as fleet:
        await fleet.wait_until_ready()

        assert harbour.registry.names() == ["mcp__slow__any", "mcp__quick__now"]


@pytest.mark.slow
async def test_servers_with_names_alike_offer_the_same_names_whichever_was_quicker(tmp_path: Path) -> None:
    available = []
    for first, second in ((0.3, 0.0), (0.0, 0.3)):
        harbour = McpTestServers(tmp_path)
        servers = {
            "a b": odd("--wait", str(first), tools=("now",)),
            "a.b": odd("--wait", str(second), tools=("now",)),
        }
        async with harbour.fleet(**servers) as fleet:
            await fleet.wait_until_ready()
            available.append([(tool.name, tool.rule_name) for tool in harbour.registry.all()])

    assert available[0] == available[1]
    assert available[0][0] == ("mcp__a_b__now", "mcp__a b__now")
    assert available[0][1][1] == "mcp__a.b__now"


async def test_only_the_tools_that_the_settings_let_through_are_offered(tmp_path: Path) -> None:
    harbour = McpTestServers(tmp_path)
    some = {"tools": ("a*", "now"), "disabled_tools": ("a.b",)}
    async with harbour.fleet(odd=odd(**some), none=odd(tools=())) as fleet:
        await fleet.wait_until_ready()
        names = harbour.registry.names()

    assert names == ["mcp__odd__now", "mcp__odd__any", "mcp__odd__a_b"]


@pytest.mark.slow
async def test_a_tool_added_later_is_offered_behind_the_others(tmp_path: Path) -> None:
    harbour = McpTestServers(tmp_path)
    async with harbour.fleet(demo=demo(), odd=odd()) as fleet:
        await fleet.wait_until_ready()
        before = harbour.registry.names()
        grow = harbour.registry.get("mcp__demo__grow")
        assert grow is not None
        await grow.execute()
        await until(lambda: "mcp__demo__grown" in harbour.registry)
        after = harbour.registry.names()

    assert after == [*before, "mcp__demo__grown"]
