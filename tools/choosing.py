"""A registry that holds some of the tools of another one. Knows nothing of who gets it, or why."""

import copy
from collections.abc import Collection

from tools.base import BaseTool, ToolContext
from tools.registry import ToolRegistry

__all__ = ["chosen_tools"]


def chosen_tools(registry: ToolRegistry, names: Collection[str]) -> ToolRegistry:
    """The tools of these names, in the order of the registry; those it makes for each call are still made anew."""
    chosen = ToolRegistry()
    for tool in registry.all():
        if tool.name in names:
            chosen.register_factory(
                tool.name, _Made(registry, tool), origin=registry.origin(tool.name) or "builtin"
            )
    return chosen


class _Made:
    """Makes what the other registry would make; of a tool that it holds as it is a copy, to be fitted out anew."""

    def __init__(self, registry: ToolRegistry, tool: BaseTool) -> None:
        self._registry = registry
        self._tool = tool
        self._own = copy.copy(tool)

    def __call__(self, context: ToolContext | None) -> BaseTool:
        made = None if context is None else self._registry.instance(self._tool.name, context)
        return self._own if made is None or made is self._tool else made
