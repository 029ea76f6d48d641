"""MCP servers: start those of a session; list, add, remove, trust and test configured ones."""

import asyncio
import importlib
import os
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from graph_agent.app.project_trust import forget_trust, project_at, record_trust, settings_at
from graph_agent.app.toolset import sandbox_of
from graph_agent.config.mcp_servers import delete_server_table, validate_server, write_server_tables
from graph_agent.config.model_choice import display_address
from graph_agent.config.paths import data_dir, make_private_folder
from graph_agent.config.project import PROJECT_CONFIG, Project
from graph_agent.config.settings import McpServer, Settings
from graph_agent.config.sources import config_file, item_key, load_settings
from graph_agent.config.trust import trust_file
from graph_agent.errors import UsageError
from graph_agent.events import EventBus, ServerChanged, WarningIssued
from graph_agent.mcp.settings import (
    ServerUnreachable,
    fingerprint,
    package_runner,
    server_environment,
    server_headers,
    server_program,
)
from graph_agent.ports import SystemClock
from tools.registry import ToolRegistry
from tools.sandbox import Sandbox

if TYPE_CHECKING:
    from graph_agent.mcp.server import ServerState
    from graph_agent.mcp.servers import McpServerGroup


__all__ = [
    "Added",
    "Scope",
    "ServerTrial",
    "ServerView",
    "SessionServers",
    "add_servers",
    "configured_server",
    "configured_servers",
    "is_trusted",
    "make_fleet",
    "needs_attention",
    "remove_server",
    "revoke_server_trust",
    "server_view",
    "trust_added_servers",
    "trust_server",
    "try_server",
]


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
    state: Literal["ready", "untrusted", "disabled", "unusable"]
    """Whether a session would start it; unusable: it cannot be started here, `problem` says why."""
    problem: str
    scope: Literal["user", "project"]
    """Whose file it stands in."""
    sandbox: bool
    network: bool
    fetches_first: str
    """Its command, where that fetches from the network that the sandbox keeps closed; else empty."""


def configured_servers() -> list[ServerView]:
    """Every server of the configuration, in its order, with those of the current folder where that is trusted.

    Raises:
        ConfigError: a setting is wrong.
    """
    settings = settings_at(Path.cwd())
    return [server_view(name, server, settings) for name, server in settings.mcp_servers.items()]


def needs_attention(server: ServerView) -> bool:
    """Whether it is wanted and would not be started."""
    return server.state in ("untrusted", "unusable")


def trust_server(name: str) -> ServerView:
    """Trust a server as it is configured now; any change of it has to be trusted anew.

    Raises:
        UsageError: there is no such server.
    """
    settings = settings_at(Path.cwd())
    server = configured_server(name, settings)
    trust_file(os.environ).add_server(name, fingerprint(server), SystemClock().now())
    return server_view(name, server, settings)


def revoke_server_trust(name: str) -> None:
    """Forget that a server was trusted."""
    trust_file(os.environ).forget_server(name)


def is_trusted(name: str, server: McpServer, settings: Settings) -> bool:
    """Trusted by itself, or listed when the user trusted the project folder that brings it."""
    return _is_of_project(name, settings) or trust_file(os.environ).has_server(fingerprint(server))


def configured_server(name: str, settings: Settings) -> McpServer:
    """The server of this name.

    Raises:
        UsageError: there is none.
    """
    servers = settings.mcp_servers
    if name not in servers:
        known = ", ".join(servers) or "none"
        raise UsageError(f"there is no MCP server {name!r}; configured: {known}. graph-agent mcp add NAME adds one")
    return servers[name]


def server_view(name: str, server: McpServer, settings: Settings) -> ServerView:
    """How a server is listed."""
    trusted = is_trusted(name, server, settings)
    problem = _problem(server)
    return ServerView(
        name=name,
        transport="http" if server.url else "stdio",
        reached_by=display_address(server.url) if server.url else shlex.join((server.command or "", *server.args)),
        variables=(*server.env, *server.headers),
        is_trusted=trusted,
        state=_state(server, is_trusted=trusted, problem=problem),
        problem=problem,
        scope="project" if _is_of_project(name, settings) else "user",
        sandbox=server.sandbox,
        network=server.network,
        fetches_first="" if server.network or not server.sandbox else package_runner(server),
    )


def _state(
    server: McpServer, *, is_trusted: bool, problem: str
) -> Literal["ready", "untrusted", "disabled", "unusable"]:
    if not server.enabled:
        return "disabled"
    if not is_trusted:
        return "untrusted"
    return "unusable" if problem else "ready"


def _problem(server: McpServer) -> str:
    """Why it cannot be started, as far as that shows without trying."""
    try:
        if server.url is None:
            server_program(server, server_environment(server))
        else:
            server_headers(server)
    except ServerUnreachable as error:
        return str(error)
    return ""


def _is_of_project(name: str, settings: Settings) -> bool:
    return item_key("mcp_servers", name) in settings.origins


class SessionServers:
    """The servers of one session. Their tools come into the registry as they are known, and go with them."""

    def __init__(self, settings: Settings, registry: ToolRegistry, workspace: Path, bus: EventBus) -> None:
        self._settings = settings
        self.registry = registry
        self._workspace = workspace
        self._bus = bus
        self._fleet: McpServerGroup | None = None

    async def start(self, *, again: bool = False) -> None:
        """Start what is trusted, in the background; say what is not, `again` only where it was trusted before."""
        warnings: list[str] = []
        trusted = await asyncio.to_thread(_trusted, self._settings, warnings.append, again=again)
        for text in warnings:
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
            await self._fleet.wait_until_ready()

    def explain_missing(self, written: str) -> str:
        """Why a tool of a server is not there, where that server failed."""
        return self._fleet.missing_tool_reason(written) if self._fleet is not None else ""

    async def close(self) -> None:
        """End them; no process is left."""
        if self._fleet is not None:
            await self._fleet.close()

    def _warn(self, text: str) -> None:
        self._bus.publish(WarningIssued(text))

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
) -> "McpServerGroup":
    """These servers, none started yet; their logs lie in the data folder."""
    # The protocol's library is loaded only where there is a server to talk to.
    server_module = importlib.import_module("graph_agent.mcp.server")
    group_module = importlib.import_module("graph_agent.mcp.servers")
    logs = data_dir(os.environ) / "logs"
    make_private_folder(logs)
    environment = server_module.McpEnvironment(workspace, logs, warn, sandbox, heard)
    return cast("McpServerGroup", group_module.McpServerGroup(servers, registry, environment))


Scope = Literal["user", "project"]


@dataclass(frozen=True, slots=True)
class Added:
    """Servers that were written into a config file."""

    servers: tuple[ServerView, ...]
    path: Path
    scope: Scope
    needs_folder: bool
    """They are a project's whose folder brings more that nobody trusted: then all of it has to be looked at."""


def add_servers(
    tables: Mapping[str, Mapping[str, Any]], scope: Scope, folder: Path, *, replaces: bool = False
) -> Added:
    """Write servers into the config file of a scope, all or none.

    Raises:
        UsageError: one describes no server, or has a name that is taken, unless `replaces`.
        ConfigError: the file cannot be read or written, or something else in it is wrong.
    """
    servers = {name: validate_server(name, table) for name, table in tables.items()}
    before, path = project_at(folder), _place(scope, folder)
    if scope == "project":
        _require_free(list(servers))
    write_server_tables(path, tables, replace=replaces, require_fit=_fit(scope, before))
    settings = settings_at(folder)
    views = (replace(server_view(name, server, settings), scope=scope) for name, server in servers.items())
    return Added(tuple(views), path, scope, scope == "project" and before.trust not in ("none", "trusted"))


def trust_added_servers(added: Added, folder: Path) -> None:
    """Let them be started as they are now.

    Raises:
        UsageError: the folder they belong to is to be looked at first.
    """
    if added.needs_folder:
        raise UsageError(
            "the folder brings more than this; see all of it and trust it with: graph-agent config trust"
        )
    if added.scope == "project":
        record_trust(project_at(folder), trusted=True)
    else:
        for server in added.servers:
            trust_server(server.name)


def remove_server(name: str, scope: Scope, folder: Path) -> Path:
    """Take a server out of the config file of a scope, and back the trust in it; returns the file.

    Raises:
        UsageError: the file has no such server.
        ConfigError: the file cannot be read or written.
    """
    before, path = project_at(folder), _place(scope, folder)
    delete_server_table(path, name)
    if scope == "user":
        revoke_server_trust(name)
    elif before.trust == "trusted":
        after = project_at(folder)
        if after.files:
            record_trust(after, trusted=True)  # What is left was trusted before.
        else:
            forget_trust(after.folder)
    return path


def _fit(scope: Scope, project: Project) -> Callable[[str], Settings]:
    """Tells a fault beside the servers before anything is written; one in what is replaced is mended by that."""
    if scope == "user":
        return lambda text: load_settings(os.environ, project=project, user_text=text)
    return lambda text: load_settings(os.environ, project=project.with_config(text))


def _place(scope: Scope, folder: Path) -> Path:
    if scope == "user":
        return config_file(os.environ)
    root = folder.resolve()
    path = root / PROJECT_CONFIG
    if not path.resolve().is_relative_to(root):
        raise UsageError(f"{path} leads to {path.resolve()}, out of the folder; nothing was changed")
    return path


def _require_free(names: list[str]) -> None:
    own = load_settings(os.environ).mcp_servers
    taken = [name for name in names if name in own]
    if taken:
        raise UsageError(f"you have a server {taken[0]!r} of your own, which goes first; take another name")


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
    (running,) = fleet.servers
    said = await asyncio.to_thread(running.log.last_lines, _LAST_LINES)
    return ServerTrial(tuple(listed), seconds, tuple(warnings), said)
