"""Tries one MCP server out: started alone, its tools listed, ended."""

import asyncio
import shlex
import time
from dataclasses import dataclass
from pathlib import Path

from graph_agent.app.project import settings_at
from graph_agent.app.server_views import configured_server, is_trusted
from graph_agent.app.servers import make_fleet
from graph_agent.app.walls import sandbox_of
from graph_agent.errors import UsageError
from tools.registry import ToolRegistry

__all__ = ["ServerTrial", "try_server"]

_GRACE_S = 5.0
_LAST_LINES = 5


@dataclass(frozen=True, slots=True)
class ServerTrial:
    """How it went."""

    tools: tuple[tuple[str, str, str], ...]
    """Name as it is offered to the model, risk, and the first line of its description."""
    seconds: float
    """Until the tools were known, or it had failed."""
    warnings: tuple[str, ...]
    said: tuple[str, ...]
    """The last lines of what it wrote on its standard error."""


async def try_server(name: str, workspace: Path) -> ServerTrial:
    """Start a trusted server, list its tools and end it.

    Raises:
        UsageError: there is no such server, or it is not trusted.
    """
    settings = settings_at(workspace)
    server = configured_server(name, settings)
    if not is_trusted(name, server, settings):
        raise UsageError(
            f"MCP server {name!r} is not trusted; look at it and run: graph-agent mcp trust {shlex.quote(name)}"
        )
    warnings: list[str] = []
    registry, walls = ToolRegistry(), sandbox_of(settings, workspace)
    fleet = await asyncio.to_thread(make_fleet, {name: server}, registry, workspace, warnings.append, walls)
    began = time.monotonic()
    fleet.start()
    try:
        await fleet.wait(server.startup_timeout + _GRACE_S)
        seconds = time.monotonic() - began
        listed = [
            (tool.name, str(tool.risk_level), str(tool.description).split("\n", 1)[0]) for tool in registry.all()
        ]
    finally:
        await fleet.close()
    (running,) = fleet.running
    said = await asyncio.to_thread(running.log.last_lines, _LAST_LINES)
    return ServerTrial(tuple(listed), seconds, tuple(warnings), said)
