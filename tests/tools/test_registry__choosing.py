from pathlib import Path

from tools.base import BaseTool, ToolContext
from tools.registry import ToolRegistry, select_tools


class _Named(BaseTool):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


def test_the_chosen_tools_keep_their_order_and_where_they_came_from() -> None:
    registry = ToolRegistry()
    registry.register(_Named("b"))
    registry.register(_Named("c"))
    registry.register(_Named("mcp__a"), origin="mcp")

    chosen = select_tools(registry, {"mcp__a", "b", "unknown"})

    assert [(tool.name, chosen.origin(tool.name)) for tool in chosen] == [("b", "builtin"), ("mcp__a", "mcp")]
    assert chosen.get("b") is not registry.get("b")


def test_what_is_made_for_each_call_still_is_and_what_went_meanwhile_stays() -> None:
    registry, context = ToolRegistry(), ToolContext(Path("/w"))
    registry.register_factory("made", lambda _: _Named("made"))
    registry.register(_Named("gone"))
    chosen = select_tools(registry, {"made", "gone"})
    registry.unregister("gone")

    first, second = chosen.instance("made", context), chosen.instance("made", context)

    assert first is not second
    assert chosen.instance("gone", context) is chosen.get("gone")
