"""The short form for stateless tools: a function instead of a class."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import BaseModel

from tools.base import BaseTool, ToolContext, ToolDescription, ToolKind, ToolResult, ToolRiskLevel

__all__ = ["create_tool"]

Execute = Callable[..., Awaitable[ToolResult | str]]


def create_tool(
    name: str,
    description: str | ToolDescription,
    parameters: type[BaseModel],
    execute: Execute,
    *,
    risk_level: ToolRiskLevel = ToolRiskLevel.MEDIUM,
    kind: ToolKind = ToolKind.EXECUTE,
    **attributes: Any,
) -> BaseTool:
    """A tool whose `execute` is an asynchronous function; a text it returns is a successful output.

    Further attributes are those of BaseTool, e.g. `tags` or `timeout_s`.

    Raises:
        TypeError: BaseTool has no such attribute.
    """
    unknown = [key for key in attributes if not hasattr(BaseTool, key)]
    if unknown:
        raise TypeError(f"create_tool({name!r}): a tool has no attribute {', '.join(unknown)}.")
    tool = _FunctionTool(execute)
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


class _FunctionTool(BaseTool):
    def __init__(self, function: Execute) -> None:
        self._function = function
        self._wants_context = "context" in inspect.signature(function).parameters

    async def execute(self, *, context: ToolContext | None = None, **arguments: Any) -> ToolResult:
        if self._wants_context:
            arguments["context"] = self.context_or_default(context)
        result = await self._function(**arguments)
        return ToolResult(result) if isinstance(result, str) else result
