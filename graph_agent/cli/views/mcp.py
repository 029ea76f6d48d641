"""What the `mcp` commands print."""

import asyncio
from dataclasses import asdict
from pathlib import Path

import typer

from graph_agent.app.servers import ServerView, known_servers, trust_server, try_server, withdraw_trust
from graph_agent.cli.escape import escape
from graph_agent.cli.logs import log_privately
from graph_agent.cli.views.screen import print_json, print_lines
from graph_agent.cli.views.table import labelled, table
from graph_agent.cli.views.trust import project_here, tell_ignored

__all__ = ["list_servers", "trust", "try_out"]

_NONE = (
    "no MCP server is configured; a table [mcp_servers.NAME] with `command` and `args`, or with `url`, "
    "in config.toml adds one"
)


def list_servers(*, as_json: bool) -> None:
    """Every configured server with whether it is trusted."""
    servers = known_servers()
    tell_ignored(project_here())
    if as_json:
        print_json({"servers": [asdict(server) for server in servers]})
    elif not servers:
        print_lines([_NONE])
    else:
        rows = [(server.name, _trusted(server), server.transport, server.reached_by) for server in servers]
        print_lines(table(("SERVER", "TRUSTED", "VIA", "COMMAND OR ADDRESS"), rows))


def trust(name: str, *, withdraw: bool, as_json: bool) -> None:
    """Trust a server, showing what is trusted; or trust it no more."""
    if withdraw:
        withdraw_trust(name)
        if as_json:
            print_json({"name": name, "is_trusted": False})
        else:
            print_lines([escape(f"{name} is not started any more until it is trusted again")])
        return
    server = trust_server(name)
    if as_json:
        print_json(asdict(server))
        return
    print_lines(
        labelled(
            {
                "trusted": server.name,
                "command" if server.transport == "stdio" else "address": server.reached_by,
                "variables": ", ".join(server.variables),
            }
        )
    )
    print_lines([escape(f"try it: graph-agent mcp test {server.name}")])


def try_out(name: str, *, as_json: bool) -> None:
    """The tools a server offers; exit code 1 with what it said when it does not work."""
    log_privately()
    tried = asyncio.run(try_server(name, Path.cwd()))
    if as_json:
        tools = [{"name": tool, "description": about} for tool, about in tried.tools]
        print_json({"server": name, "ok": not tried.warnings, "tools": tools, "warnings": list(tried.warnings)})
    else:
        print_lines([escape(warning) for warning in tried.warnings])
        print_lines(table(("TOOL", "ABOUT"), tried.tools) if tried.tools else [escape(f"{name} offers no tool")])
    if tried.warnings:
        raise typer.Exit(1)


def _trusted(server: ServerView) -> str:
    return "yes" if server.is_trusted else "no"
