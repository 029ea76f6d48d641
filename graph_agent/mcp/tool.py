"""A server's tool as one of ours. What the server says of it is foreign: bounded, and believed where it warns."""

import json
from collections.abc import Mapping
from typing import Any

from mcp.types import Tool

from graph_agent.mcp.content import text_of
from graph_agent.mcp.naming import full_name
from graph_agent.mcp.schema import arguments_model, complaint
from graph_agent.mcp.server import RunningServer, ServerFailed
from tools.base import (
    BaseTool,
    McpProgress,
    ToolContext,
    ToolErrorType,
    ToolKind,
    ToolResult,
    ToolRiskLevel,
    failure,
)
from tools.blocking import in_thread
from tools.shaping import keep

__all__ = ["McpTool"]

_DESCRIPTION_CHARS = 4_000
_SHOWN_ARGUMENTS_CHARS = 80
_ERROR_CHARS = 1_000
_BEYOND_THE_SERVERS_LIMIT_S = 30
"""The server's own limit speaks first; this is the net below it."""


class McpTool(BaseTool):
    """One tool, for one call where a context is given. Arguments go to the server under its own names."""

    category = "mcp"
    in_plan_mode = False

    def __init__(self, name: str, tool: Tool, running: RunningServer, context: ToolContext | None = None) -> None:
        super().__init__()
        hints = tool.annotations
        self.name = name
        self.original_name = tool.name
        self.rule_name = full_name(running.name, tool.name)
        self.description = _bounded(tool.description or (hints.title if hints else None) or tool.name)
        self.args_schema = arguments_model(tool.inputSchema)
        only_reads = hints is not None and hints.readOnlyHint and not hints.destructiveHint
        self.kind = ToolKind.READONLY if only_reads else ToolKind.EXECUTE
        self.risk_is_configured = running.server.risk is not None
        self.risk_level = ToolRiskLevel(running.server.risk or _declared_risk(tool))
        self.timeout_s = running.server.timeout + _BEYOND_THE_SERVERS_LIMIT_S
        self._tool = tool
        self._running = running
        self._context = context

    def validate(self, args: Mapping[str, Any]) -> str | None:
        """Holds the arguments against the server's schema, where that is one."""
        return complaint(self._tool.inputSchema, args)

    def display_call(self, args: Mapping[str, Any]) -> str:
        """Server, tool and the beginning of the arguments."""
        shown = json.dumps(args, ensure_ascii=False)
        cut = shown if len(shown) <= _SHOWN_ARGUMENTS_CHARS else f"{shown[:_SHOWN_ARGUMENTS_CHARS]}…"
        return f"{self._running.name}: {self._tool.name} {cut if args else ''}".rstrip()

    async def execute(self, **arguments: Any) -> ToolResult:
        """Call the server; its failures, refusals and time limit are error results."""
        try:
            result = await self._running.call(self._tool.name, arguments, self._progressed)
        except TimeoutError:
            limit = self._running.server.timeout
            return failure(
                ToolErrorType.TIMEOUT,
                f"{self.name} was stopped after {limit:g} seconds (mcp_servers.{self._running.name}.timeout); "
                "what it did until then is not known.",
            )
        except ServerFailed as error:
            return failure(ToolErrorType.EXECUTION, str(error))
        text = await in_thread(text_of, result, self._keep)
        if result.isError:
            return _reported(text)
        lines = text.count("\n") + 1 if text else 0
        return ToolResult(text, display=f"{self._running.name}: {lines} lines")

    def _keep(self, data: bytes) -> str | None:
        return keep(data, self._context.blobs if self._context else None)

    async def _progressed(self, progress: float, total: float | None, message: str | None) -> None:
        if self._context is not None:
            self._context.progress(McpProgress(progress, total, message or ""))


def _reported(text: str) -> ToolResult:
    """A failure in the server's words; many of them go where long results are cut."""
    if len(text) <= _ERROR_CHARS:
        return failure(ToolErrorType.EXECUTION, text or "The server reports an error and does not say which.")
    return failure(ToolErrorType.EXECUTION, f"{text[:_ERROR_CHARS]}… (whole above)", output=text)


def _declared_risk(tool: Tool) -> str:
    """A server is believed where it warns; where it says of a tool that it does no harm, the tool still asks."""
    hints = tool.annotations
    if hints is None or hints.destructiveHint:
        return "high"
    return "medium" if hints.readOnlyHint or hints.destructiveHint is False else "high"


def _bounded(text: str) -> str:
    return text if len(text) <= _DESCRIPTION_CHARS else f"{text[:_DESCRIPTION_CHARS]}…"
