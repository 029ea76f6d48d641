"""All servers of a session, and their tools in the registry, which follows what the servers list."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from mcp.types import Tool

from graph_agent.config.settings import McpServer
from graph_agent.mcp.server import ManagedServer, McpEnvironment
from graph_agent.mcp.tools import McpTool, alike, is_of, offered_name
from tools.base import ToolContext
from tools.registry import ToolRegistry

__all__ = ["McpServerGroup"]


class McpServerGroup:
    """Starts servers beside each other: a slow or broken one keeps nobody waiting."""

    def __init__(self, servers: Mapping[str, McpServer], registry: ToolRegistry, around: McpEnvironment) -> None:
        self._registry = registry
        self._around = around
        self._standing: dict[str, dict[str, Tool]] = {}
        self._alike = alike(list(servers))
        self.running = [ManagedServer(name, server, around, self._take_over) for name, server in servers.items()]

    def start(self) -> None:
        """Begin with all of them, in the background."""
        for server in self.running:
            server.start()

    async def wait(self, seconds: float) -> None:
        """Wait until each has its tools or has failed, this long at most. Who is late is named, and may join."""
        waiting = [asyncio.create_task(server.settled()) for server in self.running]
        await asyncio.wait(waiting, timeout=seconds)
        for task in waiting:
            task.cancel()
        late = [server.name for server in self.running if not server.is_settled]
        if late:
            self._around.warn(
                f"MCP servers not ready after {seconds:g} s (setting mcp_wait): {', '.join(late)}. "
                "The run goes on; their tools join when they are."
            )

    async def settled(self) -> None:
        """Wait until each has its tools or has failed."""
        await asyncio.gather(*(server.settled() for server in self.running))

    def why_missing(self, written: str) -> str:
        """Why no tool has a name that one of a server could have; empty where no server failed."""
        return next(
            (server.absence for server in self.running if is_of(server.name, written) and server.failure), ""
        )

    async def close(self) -> None:
        """End all of them; no process is left."""
        await asyncio.gather(*(server.close() for server in self.running))

    def _take_over(self, running: ManagedServer, tools: list[Tool]) -> int:
        """The server's list replaces what stood for it; what is as it was keeps its place. How many are offered."""
        is_new = running.name not in self._standing
        standing = self._standing.setdefault(running.name, {})
        wanted = [tool for tool in tools if _is_wanted(tool.name, running.server)]
        listed = _by_name(wanted)
        for name in [name for name, tool in standing.items() if tool not in listed.get(tool.name, ())]:
            self._registry.unregister(name)
            del standing[name]
        known = _by_name(standing.values())
        for tool in wanted:
            if tool in known.get(tool.name, ()):
                continue
            is_marked = running.name in self._alike
            name = offered_name(running.name, tool.name, self._registry, is_marked=is_marked)
            if name in self._registry:
                continue  # the server lists it twice
            self._registry.register_factory(name, _factory(name, tool, running), origin="mcp")
            standing[name] = tool
        if is_new:
            self._put_behind(running)
        return len(standing)

    def _put_behind(self, running: ManagedServer) -> None:
        """Tools stand in the order of the configuration, whoever was quicker: each life offers the same."""
        for later in self.running[self.running.index(running) + 1 :]:
            for name, tool in self._standing.get(later.name, {}).items():
                self._registry.unregister(name)
                self._registry.register_factory(name, _factory(name, tool, later), origin="mcp")


def _by_name(tools: Iterable[Tool]) -> Mapping[str, Sequence[Tool]]:
    """Comparing each of a thousand with each would take a second."""
    found: dict[str, list[Tool]] = {}
    for tool in tools:
        found.setdefault(tool.name, []).append(tool)
    return found


def _is_wanted(name: str, server: McpServer) -> bool:
    """Whether the settings let a tool be offered."""
    is_named = server.tools is None or any(fnmatchcase(name, pattern) for pattern in server.tools)
    return is_named and not any(fnmatchcase(name, pattern) for pattern in server.disabled_tools)


def _factory(name: str, tool: Tool, running: ManagedServer) -> Callable[[ToolContext | None], McpTool]:
    return lambda context: McpTool(name, tool, running, context)
