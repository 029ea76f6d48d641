"""The tools, their contract, and the registry. A module is loaded when one of its names is asked for."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tools.base import (
        BaseTool,
        ToolContext,
        ToolDescription,
        ToolErrorType,
        ToolExample,
        ToolKind,
        ToolResult,
        ToolRiskLevel,
        failure,
    )
    from tools.built_in import create_default_tools
    from tools.function_tool import create_tool
    from tools.registry import ToolRegistry

__all__ = [
    "BaseTool",
    "ToolContext",
    "ToolDescription",
    "ToolErrorType",
    "ToolExample",
    "ToolKind",
    "ToolRegistry",
    "ToolResult",
    "ToolRiskLevel",
    "create_default_tools",
    "create_tool",
    "failure",
    "load_on_demand",
]


def load_on_demand(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names are in the modules that it gives for them."""

    def load(name: str) -> Any:
        if name in modules:
            return getattr(import_module(f"{package}.{modules[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load


if not TYPE_CHECKING:  # For a type checker every name would be there.
    _ELSEWHERE = {"create_default_tools": "built_in", "create_tool": "function_tool", "ToolRegistry": "registry"}
    __getattr__ = load_on_demand(__name__, {name: _ELSEWHERE.get(name, "base") for name in __all__})
