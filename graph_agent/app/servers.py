"""MCP servers of a session: the trusted ones are started, the others are named."""

import asyncio
import importlib
import os
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from graph_agent.app.server_views import is_trusted
from graph_agent.app.walls import sandbox_of
from graph_agent.config.paths import data_dir
from graph_agent.config.private import make_private_folder
from graph_agent.config.settings import McpServer, Settings
from graph_agent.config.trust import trust_file
from graph_agent.events import EventBus, ServerChanged, Warned
from tools.registry import ToolRegistry
from tools.sandbox import Sandbox

if TYPE_CHECKING:
    from graph_agent.mcp.fleet import Fleet
    from graph_agent.mcp.server import ServerState

__all__ = ["SessionServers", "make_fleet"]


class SessionServers:
    """The servers of one session. Their tools come into the registry as they are known, and go with them."""

    def __init__(self, settings: Settings, registry: ToolRegistry, workspace: Path, bus: EventBus) -> None:
        self._settings = settings
        self.registry = registry
        self._workspace = workspace
        self._bus = bus
        self._fleet: Fleet | None = None

    async def start(self, *, again: bool = False) -> None:
        """Start what is trusted, in the background; say what is not, `again` only where it was trusted before."""
        told: list[str] = []
        trusted = await asyncio.to_thread(_trusted, self._settings, told.append, again=again)
        for text in told:
            self._warn(text)
        if trusted:
            walls = sandbox_of(self._settings, self._workspace)
            self._fleet = await asyncio.to_thread(
                make_fleet, trusted, self.registry, self._workspace, self._warn, walls, self._heard
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

    def why_missing(self, written: str) -> str:
        """Why a tool of a server is not there, where that server failed."""
        return self._fleet.why_missing(written) if self._fleet is not None else ""

    async def close(self) -> None:
        """End them; no process is left."""
        if self._fleet is not None:
            await self._fleet.close()

    def _warn(self, text: str) -> None:
        self._bus.publish(Warned(text))

    def _heard(self, now: "ServerState") -> None:
        self._bus.publish(ServerChanged(now.name, now.state, now.tools, now.reason))


def _trusted(settings: Settings, warn: Callable[[str], None], *, again: bool) -> Mapping[str, McpServer]:
    enabled = {name: server for name, server in settings.mcp_servers.items() if server.enabled}
    trusted = {name: server for name, server in enabled.items() if is_trusted(name, server, settings)}
    known = trust_file(os.environ)
    for name in (name for name in enabled if name not in trusted):
        if again and not known.has_server_named(name):
            continue
        warn(
            f"MCP server {name!r} is not trusted as it is configured now and was not started; look at it and run: "
            f"graph-agent mcp trust {shlex.quote(name)}"
        )
    return trusted


def make_fleet(
    servers: Mapping[str, McpServer],
    registry: ToolRegistry,
    workspace: Path,
    warn: Callable[[str], None],
    sandbox: Sandbox | None,
    heard: Callable[["ServerState"], None] = lambda _: None,
) -> "Fleet":
    """These servers, none started yet; their logs lie in the data folder."""
    # The protocol's library is loaded only where there is a server to talk to.
    fleet = importlib.import_module("graph_agent.mcp.fleet")
    around = importlib.import_module("graph_agent.mcp.server")
    logs = data_dir(os.environ) / "logs"
    make_private_folder(logs)
    return cast("Fleet", fleet.Fleet(servers, registry, around.Surroundings(workspace, logs, warn, sandbox, heard)))
