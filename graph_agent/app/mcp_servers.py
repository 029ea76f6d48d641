"""MCP servers: start those of a session; list, add, remove, trust and test configured ones."""

import asyncio
import importlib
import os
import shlex
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from graph_agent.app.project_trust import forget_trust, project_at, record_trust, settings_at
from graph_agent.app.toolset import exclude_writable_folders, sandbox_of
from graph_agent.config.mcp_servers import delete_server_table, validate_server, write_server_tables
from graph_agent.config.model_choice import display_url
from graph_agent.config.paths import data_dir, make_private_folder
from graph_agent.config.project import PROJECT_CONFIG
from graph_agent.config.settings import McpServer, Settings
from graph_agent.config.sources import config_file, item_key, load_settings
from graph_agent.config.trust import trust_file
from graph_agent.errors import UsageError
from graph_agent.events import EventBus, ServerChanged, WarningIssued
from graph_agent.mcp.settings import (
    ServerUnreachable,
    explain_refused_tools,
    fingerprint,
    package_runner,
    read_refused_tools,
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
    "configured_servers",
    "log_in_at",
    "log_out_at",
    "remove_server",
    "revoke_server_trust",
    "server_views",
    "trust_added_servers",
    "trust_server",
    "try_server",
]

Scope = Literal["user", "project"]

_TRIAL_GRACE_S = 5.0
_LOG_LINES = 5


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
    state: Literal["will_start", "untrusted", "disabled", "unusable"]
    """Whether a session would start it; unusable: it cannot be started here, `problem` says why."""
    problem: str
    scope: Scope
    """Whose file configures it."""
    sandbox: bool
    network: bool
    fetches_first: str
    """Its command, if that fetches from the network that the sandbox keeps closed; else empty."""
    refused_tools: dict[str, str]
    """The tools that were left out when it last started, by name, and what is wrong with their schemas."""

    @property
    def needs_attention(self) -> bool:
        """Whether it is enabled and would not be started."""
        return self.state in ("untrusted", "unusable")

    @property
    def refusal(self) -> str:
        """A sentence about its refused tools; empty if there are none."""
        return f"MCP server {self.name!r} {explain_refused_tools(self.refused_tools)}" if self.refused_tools else ""


def configured_servers() -> list[ServerView]:
    """Every server of the configuration, in its order, with those of the current folder if that is trusted.

    Raises:
        ConfigError: a setting is wrong.
    """
    settings = settings_at(Path.cwd())
    exclude_writable_folders(settings, Path.cwd())
    return server_views(settings)


def server_views(settings: Settings) -> list[ServerView]:
    """The servers of these settings, in their order."""
    return [_view(name, server, settings) for name, server in settings.mcp_servers.items()]


def _view(name: str, server: McpServer, settings: Settings) -> ServerView:
    is_trusted, problem = _is_trusted(name, server, settings), ""
    try:
        if server.url is None:
            server_program(server, server_environment(server))
        else:
            server_headers(server)
    except ServerUnreachable as error:
        problem = str(error)
    state: Literal["will_start", "untrusted", "disabled", "unusable"] = "unusable" if problem else "will_start"
    if not server.enabled:
        state = "disabled"
    elif not is_trusted:
        state = "untrusted"
    return ServerView(
        name=name,
        transport="http" if server.url else "stdio",
        reached_by=display_url(server.url) if server.url else shlex.join((server.command or "", *server.args)),
        variables=(*server.env, *server.headers),
        is_trusted=is_trusted,
        state=state,
        problem=problem,
        scope="project" if _is_of_project(name, settings) else "user",
        sandbox=server.sandbox,
        network=server.network,
        fetches_first="" if server.network or not server.sandbox else package_runner(server),
        refused_tools=read_refused_tools(data_dir(os.environ) / "logs", name, server),
    )


def _is_trusted(name: str, server: McpServer, settings: Settings) -> bool:
    """Trusted itself, or listed when the user trusted the project folder that brings it."""
    return _is_of_project(name, settings) or trust_file(os.environ).has_server(fingerprint(server))


def _is_of_project(name: str, settings: Settings) -> bool:
    return item_key("mcp_servers", name) in settings.origins


def _configured_server(name: str, settings: Settings) -> McpServer:
    servers = settings.mcp_servers
    if name not in servers:
        known = ", ".join(servers) or "none"
        raise UsageError(
            f"No MCP server is named {name!r}. Configured: {known}. Add one with: graph-agent mcp add NAME"
        )
    return servers[name]


def trust_server(name: str) -> ServerView:
    """Trust a server as it is configured now; after any change it has to be trusted again.

    Raises:
        UsageError: there is no such server.
    """
    settings = settings_at(Path.cwd())
    server = _configured_server(name, settings)
    trust_file(os.environ).add_server(name, fingerprint(server), SystemClock().now())
    return _view(name, server, settings)


def revoke_server_trust(name: str) -> None:
    """Forget that a server was trusted."""
    trust_file(os.environ).forget_server(name)


class SessionServers:
    """The servers of one session. Their tools are registered when they are known, and removed with them.

    `added` are those that the user's editor names, which are trusted as its user is; a server of the same name in
    the settings takes precedence.
    """

    def __init__(
        self,
        settings: Settings,
        registry: ToolRegistry,
        workspace: Path,
        bus: EventBus,
        added: Mapping[str, McpServer] | None = None,
    ) -> None:
        self._settings = settings
        self._added = added or {}
        self.registry = registry
        self._workspace = workspace
        self._bus = bus
        self._group: McpServerGroup | None = None

    async def start(self, *, again: bool = False) -> None:
        """Start the trusted ones in the background; warn about others, `again` only if they were trusted once."""
        trusted, untrusted = await asyncio.to_thread(self._by_trust, again=again)
        for name in untrusted:
            self._warn(
                f"MCP server {name!r} was not started: you have not trusted its current configuration. Check it, "
                f"then run: graph-agent mcp trust {shlex.quote(name)}"
            )
        if trusted:
            sandbox = sandbox_of(self._settings, self._workspace)
            self._group = await asyncio.to_thread(
                _make_group, trusted, self.registry, self._workspace, self._warn, sandbox, self._report
            )
            self._group.start()

    async def wait(self, seconds: float) -> None:
        """Wait until all have their tools or have failed, this long at most; late ones are named."""
        if self._group is not None:
            await self._group.wait(seconds)

    async def settled(self) -> None:
        """Wait until all have their tools or have failed, each as long as its own setting lets it take."""
        if self._group is not None:
            await self._group.wait_until_ready()

    def explain_missing(self, written: str) -> str:
        """Why a tool of a server is not there, if that server failed."""
        return self._group.missing_tool_reason(written) if self._group is not None else ""

    async def close(self) -> None:
        """End them; no process is left."""
        if self._group is not None:
            await self._group.close()

    def _by_trust(self, *, again: bool) -> tuple[Mapping[str, McpServer], list[str]]:
        """The enabled servers that may be started, and the names of those to warn about."""
        configured = self._settings.mcp_servers
        trusted = {name: server for name, server in self._added.items() if name not in configured}
        untrusted: list[str] = []
        for name, server in configured.items():
            if server.enabled and _is_trusted(name, server, self._settings):
                trusted[name] = server
            elif server.enabled and (not again or trust_file(os.environ).has_server_named(name)):
                untrusted.append(name)
        return trusted, untrusted

    def _warn(self, text: str) -> None:
        self._bus.publish(WarningIssued(text))

    def _report(self, state: "ServerState") -> None:
        self._bus.publish(ServerChanged(state.name, state.state, state.tools, state.reason))


def _make_group(
    servers: Mapping[str, McpServer],
    registry: ToolRegistry,
    workspace: Path,
    warn: Callable[[str], None],
    sandbox: Sandbox | None,
    report: Callable[["ServerState"], None] = lambda _: None,
) -> "McpServerGroup":
    """These servers, none started yet; their logs are written to the data folder."""
    # The protocol's library is loaded only if there is a server to talk to.
    server_module = importlib.import_module("graph_agent.mcp.server")
    group_module = importlib.import_module("graph_agent.mcp.servers")
    logs = data_dir(os.environ) / "logs"
    make_private_folder(logs)
    environment = server_module.McpEnvironment(workspace, logs, warn, sandbox, report)
    return cast("McpServerGroup", group_module.McpServerGroup(servers, registry, environment))


@dataclass(frozen=True, slots=True)
class Added:
    """Servers that were written into a config file."""

    servers: tuple[ServerView, ...]
    path: Path
    scope: Scope
    needs_folder: bool
    """They are a project's whose folder has more that nobody trusted: then all of it has to be looked at."""


def add_servers(
    tables: Mapping[str, Mapping[str, object]], scope: Scope, folder: Path, *, replaces: bool = False
) -> Added:
    """Write servers into the config file of a scope, all or none.

    Raises:
        UsageError: one describes no server, or has a name that is taken, unless `replaces`.
        ConfigError: the file cannot be read or written, or something else in it is wrong.
    """
    servers = {name: validate_server(name, table) for name, table in tables.items()}
    before, path = project_at(folder), _config_file(scope, folder)
    if scope == "project":
        own = load_settings(os.environ).mcp_servers
        if taken := [name for name in servers if name in own]:
            raise UsageError(
                f"You have a server {taken[0]!r} of your own, which takes precedence. Choose another name."
            )

    def validate(text: str) -> None:
        """Find a mistake beside the servers before anything is written; one in a replaced server is gone then."""
        if scope == "user":
            load_settings(os.environ, project=before, user_text=text)
        else:
            load_settings(os.environ, project=before.with_config(text))

    write_server_tables(path, tables, replace=replaces, validate=validate)
    settings = settings_at(folder)
    views = (replace(_view(name, server, settings), scope=scope) for name, server in servers.items())
    return Added(tuple(views), path, scope, scope == "project" and before.trust not in ("none", "trusted"))


def trust_added_servers(added: Added, folder: Path) -> None:
    """Let them be started as they are now.

    Raises:
        UsageError: all of the folder they belong to has to be looked at first.
    """
    if added.needs_folder:
        raise UsageError(
            "The folder has more that needs your trust. Review all of it with: graph-agent config trust"
        )
    if added.scope == "project":
        record_trust(project_at(folder), trusted=True)
    else:
        for server in added.servers:
            trust_server(server.name)


def remove_server(name: str, scope: Scope, folder: Path) -> Path:
    """Remove a server from the config file of a scope, and the trust in it; returns the file.

    Raises:
        UsageError: the file has no such server.
        ConfigError: the file cannot be read or written.
    """
    before, path = project_at(folder), _config_file(scope, folder)
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


def _config_file(scope: Scope, folder: Path) -> Path:
    if scope == "user":
        return config_file(os.environ)
    root = folder.resolve()
    path = root / PROJECT_CONFIG
    if not path.resolve().is_relative_to(root):
        raise UsageError(f"{path} is a link to {path.resolve()}, outside the folder. Nothing was changed.")
    return path


async def log_in_at(name: str, workspace: Path, show: Callable[[str], Awaitable[None]]) -> bool:
    """Log in to a trusted server; False if it requires no login. `show` gets the address to open in the browser.

    Raises:
        UsageError: there is no such server, it is a program, is not trusted, or the login did not succeed.
        StorageError: the tokens cannot be stored.
    """
    oauth = importlib.import_module("graph_agent.mcp.oauth")
    url = _login_address(name, settings_at(workspace), needs_trust=True)
    try:
        return bool(await oauth.log_in(oauth.token_file(os.environ), url, show))
    except oauth.LoginFailed as failed:
        raise UsageError(f"Cannot log in to MCP server {name!r}: {str(failed).rstrip('.')}.") from None


def log_out_at(name: str, workspace: Path) -> bool:
    """Forget the tokens of a server; False if there were none.

    Raises:
        UsageError: there is no such server, or it is a program.
        StorageError: the tokens cannot be removed.
    """
    oauth = importlib.import_module("graph_agent.mcp.oauth")
    url = _login_address(name, settings_at(workspace), needs_trust=False)
    return bool(oauth.token_file(os.environ).forget(url))


def _login_address(name: str, settings: Settings, *, needs_trust: bool) -> str:
    server = _configured_server(name, settings)
    if server.url is None:
        raise UsageError(f"MCP server {name!r} is a program; only servers with a url can require a login.")
    if needs_trust and not _is_trusted(name, server, settings):
        raise UsageError(
            f"MCP server {name!r} is not trusted. Check it, then run: graph-agent mcp trust {shlex.quote(name)}"
        )
    return server.url


@dataclass(frozen=True, slots=True)
class ServerTrial:
    """The result of a test."""

    tools: tuple[tuple[str, str, str], ...]
    """Name as it is offered to the model, risk, and the first line of its description."""
    seconds: float
    """Until the tools were known, or it had failed."""
    warnings: tuple[str, ...]
    said: tuple[str, ...]
    """The last lines of its standard error."""


async def try_server(name: str, workspace: Path) -> ServerTrial:
    """Start a trusted server, list its tools and end it.

    Raises:
        UsageError: there is no such server, or it is not trusted.
    """
    settings = settings_at(workspace)
    server = _configured_server(name, settings)
    if not _is_trusted(name, server, settings):
        raise UsageError(
            f"MCP server {name!r} is not trusted. Check it, then run: graph-agent mcp trust {shlex.quote(name)}"
        )
    warnings: list[str] = []
    registry, sandbox = ToolRegistry(), sandbox_of(settings, workspace)
    group = await asyncio.to_thread(_make_group, {name: server}, registry, workspace, warnings.append, sandbox)
    started = time.monotonic()
    group.start()
    try:
        await group.wait(server.startup_timeout + _TRIAL_GRACE_S)
        seconds = time.monotonic() - started
        tools = tuple(
            (tool.name, str(tool.risk_level), str(tool.description).split("\n", 1)[0]) for tool in registry.all()
        )
    finally:
        await group.close()
    (running,) = group.servers
    said = await asyncio.to_thread(running.log.last_lines, _LOG_LINES)
    return ServerTrial(tools, seconds, tuple(warnings), said)
