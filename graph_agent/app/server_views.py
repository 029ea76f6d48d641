"""What is configured of MCP servers, seen without starting any; and the trust in one, given and taken back."""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from graph_agent.app.project import settings_at
from graph_agent.config.choice import shown_address
from graph_agent.config.settings import McpServer, Settings
from graph_agent.config.tightening import item_key
from graph_agent.config.trust import trust_file
from graph_agent.errors import UsageError
from graph_agent.mcp.reaching import CannotReach, environment_of, fetches_first, headers_of, program_of
from graph_agent.mcp.trust import fingerprint
from graph_agent.ports import SystemClock

__all__ = [
    "ServerView",
    "configured_server",
    "is_amiss",
    "is_trusted",
    "known_servers",
    "server_view",
    "trust_server",
    "withdraw_trust",
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


def known_servers() -> list[ServerView]:
    """Every server of the configuration, in its order, with those of the current folder where that is trusted.

    Raises:
        ConfigError: a setting is wrong.
    """
    settings = settings_at(Path.cwd())
    return [server_view(name, server, settings) for name, server in settings.mcp_servers.items()]


def is_amiss(server: ServerView) -> bool:
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


def withdraw_trust(name: str) -> None:
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
        reached_by=shown_address(server.url) if server.url else shlex.join((server.command or "", *server.args)),
        variables=(*server.env, *server.headers),
        is_trusted=trusted,
        state=_state(server, is_trusted=trusted, problem=problem),
        problem=problem,
        scope="project" if _is_of_project(name, settings) else "user",
        sandbox=server.sandbox,
        network=server.network,
        fetches_first="" if server.network or not server.sandbox else fetches_first(server),
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
            program_of(server, environment_of(server))
        else:
            headers_of(server)
    except CannotReach as error:
        return str(error)
    return ""


def _is_of_project(name: str, settings: Settings) -> bool:
    return item_key("mcp_servers", name) in settings.origins
