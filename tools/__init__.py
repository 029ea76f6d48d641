"""The tools, their contract, and the registry. A module is loaded when one of its names is asked for."""

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
    from tools.create_tool import create_tool
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
]

if not TYPE_CHECKING:  # For a type checker every name would be there.
    _MODULES = {"create_default_tools": "built_in", "create_tool": "create_tool", "ToolRegistry": "registry"}
    """Of the names that are not of `tools.base`."""

    def __getattr__(name: str) -> Any:
        if name in __all__:
            return getattr(import_module(f"tools.{_MODULES.get(name, 'base')}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
