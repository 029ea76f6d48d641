"""All servers of a session, and their tools in the registry, which follows what the servers list."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from mcp.types import Tool

from graph_agent.config.settings import McpServer
from graph_agent.mcp.server import ManagedServer, McpEnvironment
from graph_agent.mcp.settings import explain_refused_tools, record_refused_tools
from graph_agent.mcp.tools import McpTool, ambiguous_servers, is_tool_of, offered_name, usable_schema
from tools.base import ToolContext
from tools.registry import ToolRegistry
from tools.schema import schema_problem

__all__ = ["McpServerGroup"]


class McpServerGroup:
    """Starts servers in parallel, so that a slow or broken one delays nothing."""

    def __init__(
        self, servers: Mapping[str, McpServer], registry: ToolRegistry, environment: McpEnvironment
    ) -> None:
        self._registry = registry
        self._environment = environment
        self._registered: dict[str, dict[str, Tool]] = {}
        """By server, the tools by the name under which they are offered."""
        self._refused: dict[str, dict[str, str]] = {}
        """By server, what is wrong with the schemas of its tools that are left out."""
        self._ambiguous = ambiguous_servers(list(servers))
        self.servers = [ManagedServer(name, server, environment, self._update) for name, server in servers.items()]

    def start(self) -> None:
        """Start all of them in the background."""
        for server in self.servers:
            server.start()

    async def wait(self, seconds: float) -> None:
        """Wait at most this long until each is ready or has failed; late ones are named, and join later."""
        waiting = [asyncio.create_task(server.wait_until_ready()) for server in self.servers]
        await asyncio.wait(waiting, timeout=seconds)
        for task in waiting:
            task.cancel()
        late = [server.name for server in self.servers if not server.is_ready]
        if late:
            self._environment.warn(
                f"MCP servers not ready after {seconds:g} s (setting mcp_wait): {', '.join(late)}. "
                "The run continues; their tools are added when they are ready."
            )

    async def wait_until_ready(self) -> None:
        """Wait until each is ready or has failed."""
        await asyncio.gather(*(server.wait_until_ready() for server in self.servers))

    def missing_tool_reason(self, name: str) -> str:
        """Why there is no tool of a name that a server could offer; empty where no server failed."""
        reasons = (
            server.failure_message for server in self.servers if server.failure and is_tool_of(server.name, name)
        )
        return next(reasons, "")

    async def close(self) -> None:
        """End all of them; no process is left."""
        await asyncio.gather(*(server.close() for server in self.servers))

    def _update(self, server: ManagedServer, tools: list[Tool]) -> int:
        """Replace a server's registered tools, leaving unchanged ones in place; returns how many are offered."""
        is_new = server.name not in self._registered
        registered = self._registered.setdefault(server.name, {})
        enabled = self._offerable(server, [tool for tool in tools if _is_enabled(tool.name, server.server)])
        listed = _by_name(enabled)
        for name in [name for name, tool in registered.items() if tool not in listed.get(tool.name, ())]:
            self._registry.unregister(name)
            del registered[name]
        known = _by_name(registered.values())
        for tool in enabled:
            if tool in known.get(tool.name, ()):
                continue
            is_ambiguous = server.name in self._ambiguous
            name = offered_name(server.name, tool.name, self._registry, is_ambiguous=is_ambiguous)
            if name in self._registry:
                continue  # The server lists it twice.
            self._registry.register_factory(name, _factory(name, tool, server), origin="mcp")
            registered[name] = tool
        if is_new:
            self._move_later_servers_behind(server)
        return len(registered)

    def _offerable(self, server: ManagedServer, tools: Sequence[Tool]) -> list[Tool]:
        """The tools that a provider accepts; with one of the others it would refuse every request."""
        problems = {tool.name: schema_problem(usable_schema(tool.inputSchema)) for tool in tools}
        refused = {name: problem for name, problem in problems.items() if problem}
        if refused != self._refused.get(server.name):
            record_refused_tools(self._environment.logs, server.name, server.server, refused)
            if refused:
                self._environment.warn(f"MCP server {server.name!r} {explain_refused_tools(refused)}")
        self._refused[server.name] = refused
        return [tool for tool in tools if not problems[tool.name]]

    def _move_later_servers_behind(self, server: ManagedServer) -> None:
        """Tools are in the order of the configuration, whichever server was faster: every run offers the same."""
        for later in self.servers[self.servers.index(server) + 1 :]:
            for name, tool in self._registered.get(later.name, {}).items():
                self._registry.unregister(name)
                self._registry.register_factory(name, _factory(name, tool, later), origin="mcp")


def _by_name(tools: Iterable[Tool]) -> Mapping[str, Sequence[Tool]]:
    """Comparing each of a thousand tools with each would take a second."""
    found: dict[str, list[Tool]] = {}
    for tool in tools:
        found.setdefault(tool.name, []).append(tool)
    return found


def _is_enabled(name: str, server: McpServer) -> bool:
    is_listed = server.tools is None or any(fnmatchcase(name, pattern) for pattern in server.tools)
    return is_listed and not any(fnmatchcase(name, pattern) for pattern in server.disabled_tools)


def _factory(name: str, tool: Tool, server: ManagedServer) -> Callable[[ToolContext | None], McpTool]:
    return lambda context: McpTool(name, tool, server, context)
