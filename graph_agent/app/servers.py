"""MCP servers of a session: the trusted ones are started, the others are named. Also what the `mcp` commands do."""

import asyncio
import importlib
import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from graph_agent.app.project import settings_at
from graph_agent.app.walls import sandbox_of
from graph_agent.config.choice import shown_url
from graph_agent.config.paths import data_dir
from graph_agent.config.private import make_private_folder
from graph_agent.config.settings import McpServer, Settings
from graph_agent.config.tightening import item_key
from graph_agent.config.trust import trust_file
from graph_agent.errors import UsageError
from graph_agent.events import EventBus, Warned
from graph_agent.mcp.trust import fingerprint
from graph_agent.ports import SystemClock
from tools.registry import ToolRegistry
from tools.sandbox import Sandbox

if TYPE_CHECKING:
    from graph_agent.mcp.fleet import Fleet

__all__ = [
    "ServerTools",
    "ServerView",
    "SessionServers",
    "known_servers",
    "trust_server",
    "try_server",
    "withdraw_trust",
]

_TEST_GRACE_S = 5.0


class SessionServers:
    """The servers of one session. Their tools come into the registry as they are known, and go with them."""

    def __init__(self, settings: Settings, registry: ToolRegistry, workspace: Path, bus: EventBus) -> None:
        self._settings = settings
        self.registry = registry
        self._workspace = workspace
        self._bus = bus
        self._fleet: Fleet | None = None

    async def start(self) -> None:
        """Start what is trusted, in the background; say what is not."""
        trusted = await asyncio.to_thread(_trusted, self._settings, self._warn)
        if trusted:
            walls = sandbox_of(self._settings, self._workspace)
            self._fleet = await asyncio.to_thread(
                _fleet, trusted, self.registry, self._workspace, self._warn, walls
            )
            self._fleet.start()

    async def wait(self, seconds: float) -> None:
        """Wait until all have their tools or have failed, this long at most; who is late is named."""
        if self._fleet is not None:
            await self._fleet.wait(seconds)

    async def settled(self) -> None:
        """Wait until all have their tools or have failed, each as long as its own setting lets it take."""
        if self._fleet is not None:
            await self._fleet.settled()

    async def close(self) -> None:
        """End them; no process is left."""
        if self._fleet is not None:
            await self._fleet.close()

    def _warn(self, text: str) -> None:
        self._bus.publish(Warned(text))


@dataclass(frozen=True, slots=True)
class ServerView:
    """A configured server, for a listing."""

    name: str
    transport: Literal["stdio", "http"]
    reached_by: str
    """The command line, or the address; no secrets."""
    variables: tuple[str, ...]
    """Names of the variables and headers it gets."""
    is_trusted: bool


def known_servers() -> list[ServerView]:
    """Every server of the configuration, in its order, with those of the current folder where that is trusted.

    Raises:
        ConfigError: a setting is wrong.
    """
    settings = settings_at(Path.cwd())
    return [_view(name, server, settings) for name, server in settings.mcp_servers.items()]


def trust_server(name: str) -> ServerView:
    """Trust a server as it is configured now; any change of it has to be trusted anew.

    Raises:
        UsageError: there is no such server.
    """
    settings = settings_at(Path.cwd())
    server = _configured(name, settings)
    trust_file(os.environ).add_server(name, fingerprint(server), SystemClock().now())
    return _view(name, server, settings)


def withdraw_trust(name: str) -> None:
    """Forget that a server was trusted."""
    trust_file(os.environ).forget_server(name)


@dataclass(frozen=True, slots=True)
class ServerTools:
    """What a server offered when it was tried."""

    tools: tuple[tuple[str, str], ...]
    """Name as it is offered to the model, and the first line of its description."""
    warnings: tuple[str, ...]


async def try_server(name: str, workspace: Path) -> ServerTools:
    """Start a trusted server, list its tools and end it.

    Raises:
        UsageError: there is no such server, or it is not trusted.
    """
    settings = settings_at(workspace)
    server = _configured(name, settings)
    if not _is_trusted(name, server, settings):
        raise UsageError(
            f"MCP server {name!r} is not trusted; look at it and run: graph-agent mcp trust {shlex.quote(name)}"
        )
    warnings: list[str] = []
    registry = ToolRegistry()
    walls = sandbox_of(settings, workspace)
    fleet = await asyncio.to_thread(_fleet, {name: server}, registry, workspace, warnings.append, walls)
    fleet.start()
    try:
        await fleet.wait(server.startup_timeout + _TEST_GRACE_S)
        listed = [(tool.name, str(tool.description).split("\n", 1)[0]) for tool in registry.all()]
    finally:
        await fleet.close()
    return ServerTools(tuple(listed), tuple(warnings))


def _trusted(settings: Settings, warn: Callable[[str], None]) -> Mapping[str, McpServer]:
    trusted = {name: server for name, server in settings.mcp_servers.items() if _is_trusted(name, server, settings)}
    for name in settings.mcp_servers.keys() - trusted.keys():
        warn(
            f"MCP server {name!r} is not trusted as it is configured now and was not started; look at it and run: "
            f"graph-agent mcp trust {shlex.quote(name)}"
        )
    return trusted


def _fleet(
    servers: Mapping[str, McpServer],
    registry: ToolRegistry,
    workspace: Path,
    warn: Callable[[str], None],
    sandbox: Sandbox | None,
) -> "Fleet":
    # The protocol's library is loaded only where there is a server to talk to.
    fleet = importlib.import_module("graph_agent.mcp.fleet")
    around = importlib.import_module("graph_agent.mcp.server")
    logs = data_dir(os.environ) / "logs"
    make_private_folder(logs)
    return cast("Fleet", fleet.Fleet(servers, registry, around.Surroundings(workspace, logs, warn, sandbox)))


def _is_trusted(name: str, server: McpServer, settings: Settings) -> bool:
    """Trusted by itself, or listed when the user trusted the project folder that brings it."""
    return item_key("mcp_servers", name) in settings.origins or trust_file(os.environ).has_server(
        fingerprint(server)
    )


def _configured(name: str, settings: Settings) -> McpServer:
    servers = settings.mcp_servers
    if name not in servers:
        known = ", ".join(servers) or "none"
        raise UsageError(
            f"there is no MCP server {name!r}; configured: {known}. "
            "A table [mcp_servers.NAME] in config.toml adds one"
        )
    return servers[name]


def _view(name: str, server: McpServer, settings: Settings) -> ServerView:
    command = shlex.join((server.command or "", *server.args))
    return ServerView(
        name=name,
        transport="http" if server.url else "stdio",
        reached_by=shown_url(server.url) if server.url else command,
        variables=(*server.env, *server.headers),
        is_trusted=_is_trusted(name, server, settings),
    )
