"""What the `mcp` commands print."""

import asyncio
import shlex
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

import typer

from graph_agent.app.server_trial import ServerTrial, try_server
from graph_agent.app.server_views import ServerView, known_servers, trust_server, withdraw_trust
from graph_agent.cli.escape import escape
from graph_agent.cli.logs import log_privately
from graph_agent.cli.views.counting import counted
from graph_agent.cli.views.screen import print_json, print_lines
from graph_agent.cli.views.table import labelled, table
from graph_agent.cli.views.trust import project_here, tell_ignored
from graph_agent.events import ServerChanged

__all__ = ["described", "list_servers", "trust", "try_out"]

_NONE = (
    "no MCP server is configured; `graph-agent mcp add NAME -- COMMAND ARGS` adds one, and so does a table "
    "[mcp_servers.NAME] with `command` and `args`, or with `url`, in config.toml"
)

_STATES = {"ready": "ready", "untrusted": "not trusted", "disabled": "disabled", "unusable": "cannot start"}


def list_servers(*, as_json: bool, live: Mapping[str, ServerChanged] = MappingProxyType({})) -> None:
    """Every configured server with whether it would be started; in a session, how it is doing."""
    servers = known_servers()
    tell_ignored(project_here())
    if as_json:
        print_json({"servers": [asdict(server) for server in servers]})
    elif not servers:
        print_lines([_NONE])
    else:
        rows = [(server.name, _state(server, live), server.transport, server.reached_by) for server in servers]
        print_lines(table(("SERVER", "STATE", "VIA", "COMMAND OR ADDRESS"), rows))
        problems = [(server.name, _problem(server, live)) for server in servers]
        print_lines(escape(f"{name}: {problem}") for name, problem in problems if problem)


def _state(server: ServerView, live: Mapping[str, ServerChanged]) -> str:
    now = live.get(server.name)
    if now is None:
        return _STATES[server.state]
    return f"running, {now.tools} tools" if now.state == "running" else now.state


def _problem(server: ServerView, live: Mapping[str, ServerChanged]) -> str:
    now = live.get(server.name)
    return server.problem if now is None else now.reason


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
    print_lines(labelled({"trusted": server.name, **described(server)}))
    print_lines([escape(f"try it: graph-agent mcp test {shlex.quote(server.name)}")])


def described(server: ServerView) -> dict[str, str]:
    """What is started or reached, and with what."""
    network = "the network too" if server.network else "no network"
    return {
        "command" if server.transport == "stdio" else "address": server.reached_by,
        "variables" if server.transport == "stdio" else "headers": ", ".join(server.variables),
        "sandbox": "" if server.transport == "http" else network if server.sandbox else "off",
    }


def try_out(name: str, *, as_json: bool) -> None:
    """The tools a server offers; exit code 1 with what it said when it does not work."""
    log_privately()
    tried = asyncio.run(try_server(name, Path.cwd()))
    if as_json:
        print_json(_trial_json(name, tried))
    else:
        print_lines([escape(warning) for warning in tried.warnings])
        if tried.warnings:
            print_lines([escape(f"  | {line}", multiline=False) for line in tried.said])
        else:
            count = counted(len(tried.tools), "tool") if tried.tools else "no tool"
            print_lines([escape(f"{name} offers {count}; it was ready after {tried.seconds:.1f} s")])
            print_lines(table(("TOOL", "RISK", "ABOUT"), tried.tools) if tried.tools else [])
    if tried.warnings:
        raise typer.Exit(1)


def _trial_json(name: str, tried: ServerTrial) -> dict[str, Any]:
    return {
        "server": name,
        "ok": not tried.warnings,
        "seconds": round(tried.seconds, 3),
        "tools": [{"name": tool, "risk": risk, "description": about} for tool, risk, about in tried.tools],
        "warnings": list(tried.warnings),
        "stderr": list(tried.said),
    }
