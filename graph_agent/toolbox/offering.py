"""What a model is offered: which tools, in which order, and which by name alone until it searched for them."""

from collections.abc import Mapping, Sequence
from typing import Any

from policy import Rule, hidden_tools
from tools.agent_ops.tool_search import ToolSearchTool, with_names
from tools.base import BaseTool
from tools.registry import ToolRegistry

__all__ = ["add_tool_search", "declared", "hidden_names", "offered_names"]

_SEARCH = ToolSearchTool.name


def hidden_names(registry: ToolRegistry, deny: Sequence[Rule]) -> frozenset[str]:
    """The tools that a bare deny rule takes away, by whichever of their names it speaks of."""
    by_rule_name = hidden_tools(deny, {tool.rule_name for tool in registry if tool.rule_name})
    return hidden_tools(deny, registry.names()) | {tool.name for tool in registry if tool.rule_name in by_rule_name}


def add_tool_search(registry: ToolRegistry, deny: Sequence[Rule]) -> None:
    """Register the search over what this registry defers; what is denied is not found."""

    def deferred() -> list[BaseTool]:
        hidden = hidden_names(registry, deny)
        return [tool for tool in registry.deferred() if tool.name not in hidden]

    registry.register(ToolSearchTool(deferred))


def offered_names(registry: ToolRegistry, mode: str, hidden: frozenset[str]) -> frozenset[str]:
    """What is offered in a mode, if by name alone; the search only where there is something to find."""
    names = {tool.name for tool in registry.offered(mode, hidden)}
    by_name = {tool.name for tool in registry.deferred()} & names
    return frozenset(names if by_name else names - {_SEARCH})


def declared(
    registry: ToolRegistry,
    mode: str,
    hidden: frozenset[str],
    loaded: Sequence[str],
    computed: Mapping[str, dict[str, Any]],
) -> list[dict[str, Any]]:
    """Function declarations: those that never change place first, then what was loaded, in the order of loading.

    A prefix that a provider has cached so stays the same when the model loads one more.
    """
    whole = {
        item["function"]["name"]: computed.get(item["function"]["name"], item)
        for item in registry.declarations(mode, hidden)
    }
    by_name = [tool for tool in registry.deferred() if tool.name in whole]
    if not by_name or _SEARCH not in whole:
        return [item for name, item in whole.items() if name != _SEARCH]
    whole[_SEARCH] = with_names(whole[_SEARCH], by_name)
    later = {tool.name for tool in by_name}
    first = [item for name, item in whole.items() if name not in later]
    return [*first, *(whole[name] for name in loaded if name in later)]
