"""The short form for stateless tools: a function instead of a class."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

from tools.result import ToolKind, ToolResult, ToolRiskLevel

if TYPE_CHECKING:  # Only a call needs these.
    from pydantic import BaseModel

    from tools.base import BaseTool, ToolDescription

__all__ = ["create_tool"]

Execute = Callable[..., Awaitable[ToolResult | str] | AsyncIterator[object]]


def create_tool(
    name: str,
    description: "str | ToolDescription",
    parameters: "type[BaseModel]",
    execute: Execute,
    *,
    risk_level: ToolRiskLevel = ToolRiskLevel.MEDIUM,
    kind: ToolKind = ToolKind.EXECUTE,
    **attributes: Any,
) -> "BaseTool":
    """A tool whose `execute` is an asynchronous function; a text it returns is a successful output.

    It may be an async generator too, see `BaseTool.execute`. Bad arguments and what the function raises become
    error results, whoever calls the tool. Further attributes are those of BaseTool, e.g. `tags` or `timeout_s`.

    Raises:
        TypeError: BaseTool has no such attribute.
    """
    from tools.base import FunctionTool  # noqa: PLC0415 - as above

    unknown = [key for key in attributes if not hasattr(FunctionTool, key)]
    if unknown:
        raise TypeError(f"create_tool({name!r}): a tool has no attribute {', '.join(unknown)}.")
    tool = FunctionTool(execute)
    declared = {
        "name": name,
        "description": description,
        "args_schema": parameters,
        "risk_level": risk_level,
        "kind": kind,
    }
    for key, value in (declared | attributes).items():
        setattr(tool, key, value)
    return tool
