from collections.abc import Sequence
from typing import Any

import pytest

from graph_agent.toolbox.toolbox import add_tool_search, build_declarations, denied_tools, offered_names
from policy import parse_rules
from tools.base import BaseTool, ToolKind
from tools.registry import ToolRegistry


class Reads(BaseTool):
    name = "reads"
    kind = ToolKind.READONLY


class Later(BaseTool):
    name = "later"
    defer = True


def _of_server(number: int) -> BaseTool:
    tool = Reads()
    tool.name, tool.rule_name = f"mcp__s__{number}", f"mcp__s__the {number}"
    return tool


def _registry(*later: BaseTool, servers: int = 0, deny: Sequence[str] = ()) -> tuple[ToolRegistry, frozenset[str]]:
    registry = ToolRegistry(deferred_above=2)
    registry.register(Reads())
    rules = parse_rules(deny=list(deny)).deny
    add_tool_search(registry, rules)
    registry.register_all(later, origin="plugin")
    registry.register_mcp_tools(_of_server(number) for number in range(servers))
    return registry, denied_tools(registry, rules)


def _names(found: list[dict[str, Any]]) -> list[str]:
    return [item["function"]["name"] for item in found]


@pytest.mark.parametrize(
    ("servers", "loaded", "names"),
    [
        (0, [], ["reads"]),
        (2, [], ["reads", "mcp__s__0", "mcp__s__1"]),
        (3, [], ["reads", "tool_search"]),
        (3, ["mcp__s__2", "gone", "mcp__s__0"], ["reads", "tool_search", "mcp__s__2", "mcp__s__0"]),
    ],
)
def test_tools_of_servers_are_deferred_above_a_number_and_come_last_once_loaded(
    servers: int, loaded: list[str], names: list[str]
) -> None:
    registry, redact_result = _registry(servers=servers)

    assert _names(build_declarations(registry, "default", redact_result, loaded, {})) == names


def test_what_was_loaded_leaves_everything_before_it_as_it_was() -> None:
    registry, redact_result = _registry(Later(), servers=3)

    before = build_declarations(registry, "default", redact_result, (), {})
    after = build_declarations(registry, "default", redact_result, ("later",), {})

    assert after[: len(before)] == before
    assert "- later\n- mcp__s__0\n" in before[-1]["function"]["description"]


async def test_what_is_denied_is_neither_named_nor_found() -> None:
    registry, redact_result = _registry(Later(), servers=3, deny=["later", "mcp__s__the 1"])
    search = registry.get("tool_search")
    assert search is not None

    told = build_declarations(registry, "default", redact_result, ("later", "mcp__s__1"), {})
    found = await search.execute(query="later mcp__s__1 mcp__s__2")

    assert _names(told) == ["reads", "tool_search"]
    assert found.metadata == {"loaded_tools": ["mcp__s__2"]}


def test_where_searching_is_denied_everything_is_declared() -> None:
    registry, redact_result = _registry(Later(), deny=["tool_search"])

    assert _names(build_declarations(registry, "default", redact_result, (), {})) == ["reads", "later"]


def test_plan_mode_defers_only_what_it_offers() -> None:
    registry, redact_result = _registry(Later())

    assert offered_names(registry, "plan", redact_result) == {"reads"}
    assert offered_names(registry, "default", redact_result) == {"reads", "later", "tool_search"}
