"""Servers of the protocol for tests: how they are configured, started and watched."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graph_agent.config.settings import McpServer
from graph_agent.mcp.server import McpEnvironment
from graph_agent.mcp.servers import McpServerGroup
from tools.registry import ToolRegistry

__all__ = ["McpTestServers", "demo", "odd"]

_FAKES = Path(__file__).parent


def demo(*arguments: str, **settings: Any) -> McpServer:
    """The server made with the SDK."""
    return McpServer(command=sys.executable, args=(str(_FAKES / "mcp_demo.py"), *arguments), **settings)


def odd(*arguments: str, **settings: Any) -> McpServer:
    """The server that lists what no SDK would."""
    return McpServer(command=sys.executable, args=(str(_FAKES / "mcp_odd.py"), *arguments), **settings)


@dataclass
class McpTestServers:
    """A folder for servers, their registry, and what was warned of."""

    folder: Path
    registry: ToolRegistry = field(default_factory=ToolRegistry)
    warnings: list[str] = field(default_factory=list)

    @property
    def around(self) -> McpEnvironment:
        """What the servers are given."""
        return McpEnvironment(self.folder, self.folder, self.warnings.append)

    @asynccontextmanager
    async def fleet(self, **servers: McpServer) -> AsyncIterator[McpServerGroup]:
        """These servers, started; ended when the block is left."""
        fleet = McpServerGroup(servers, self.registry, self.around)
        fleet.start()
        try:
            yield fleet
        finally:
            await fleet.close()
