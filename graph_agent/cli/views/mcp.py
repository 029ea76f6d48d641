"""The `mcp` commands: list, add, remove, trust and test MCP servers."""

import asyncio
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import typer

from graph_agent.app.mcp_servers import (
    Added,
    Scope,
    ServerTrial,
    ServerView,
    add_servers,
    configured_servers,
    remove_server,
    revoke_server_trust,
    trust_added_servers,
    trust_server,
    try_server,
)
from graph_agent.cli.render.escape import escape
from graph_agent.cli.startup import log_to_file
from graph_agent.cli.views.format import confirm, format_count
from graph_agent.cli.views.settings import current_project, print_ignored_files
from graph_agent.cli.views.table import format_fields, format_table, print_json, print_lines
from graph_agent.config.mcp_servers import parse_client_config
from graph_agent.config.paths import read_plain_text
from graph_agent.errors import UsageError
from graph_agent.events import ServerChanged

__all__ = ["ServerRequest", "add_server", "describe_server", "list_servers", "print_test", "remove", "trust"]

_NONE = (
    "No MCP servers. Add one with: graph-agent mcp add NAME -- COMMAND ARGS, "
    "or with a table [mcp_servers.NAME] in config.toml."
)

_STATES = {"ready": "ready", "untrusted": "not trusted", "disabled": "disabled", "unusable": "cannot start"}


def list_servers(*, as_json: bool, live: Mapping[str, ServerChanged] = MappingProxyType({})) -> None:
    """Print every configured server and whether it can start; in a session, its current state."""
    servers = configured_servers()
    print_ignored_files(current_project())
    if as_json:
        print_json({"servers": [asdict(server) for server in servers]})
    elif not servers:
        print_lines([_NONE])
    else:
        rows = [(server.name, _state(server, live), server.transport, server.reached_by) for server in servers]
        print_lines(format_table(("SERVER", "STATE", "VIA", "COMMAND OR ADDRESS"), rows))
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
    """Trust a server and show what it runs, or revoke its trust."""
    if withdraw:
        revoke_server_trust(name)
        if as_json:
            print_json({"name": name, "is_trusted": False})
        else:
            print_lines([escape(f"Trust revoked: {name} does not start until you trust it again.")])
        return
    server = trust_server(name)
    if as_json:
        print_json(asdict(server))
        return
    print_lines(format_fields({"trusted": server.name, **describe_server(server)}))
    print_lines([escape(f"Test it with: graph-agent mcp test {shlex.quote(server.name)}")])


def describe_server(server: ServerView) -> dict[str, str]:
    """The command or address of a server, its variables or headers, and its sandbox."""
    network = "with network" if server.network else "no network"
    return {
        "command" if server.transport == "stdio" else "address": server.reached_by,
        "variables" if server.transport == "stdio" else "headers": ", ".join(server.variables),
        "sandbox": "" if server.transport == "http" else network if server.sandbox else "off",
    }


def print_test(name: str, *, as_json: bool) -> None:
    """Start a server and print its tools; exit code 1 with its output if it does not work."""
    log_to_file()
    tried = asyncio.run(try_server(name, Path.cwd()))
    if as_json:
        print_json(_trial_json(name, tried))
    else:
        print_lines([escape(warning) for warning in tried.warnings])
        if tried.warnings:
            print_lines([escape(f"  | {line}", multiline=False) for line in tried.said])
        else:
            count = format_count(len(tried.tools), "tool") if tried.tools else "no tool"
            print_lines([escape(f"{name} started in {tried.seconds:.1f} s and has {count}.")])
            print_lines(format_table(("TOOL", "RISK", "DESCRIPTION"), tried.tools) if tried.tools else [])
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


_HOW = (
    "Name the server and its command: graph-agent mcp add NAME -- COMMAND ARGS. "
    "Or give its address with --url URL, or import servers with --from FILE."
)


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """The arguments of `mcp add`."""

    name: str | None
    command: tuple[str, ...]
    url: str | None
    env: tuple[str, ...]
    headers: tuple[str, ...]
    source: str | None


def add_server(
    wish: ServerRequest, more: Mapping[str, Any], scope: Scope, *, replaces: bool, trusts: bool, as_json: bool
) -> None:
    """Add servers to the configuration, show them, and trust them if the user agrees or `trusts`.

    Raises:
        UsageError: the arguments describe no server, or the name is taken.
        ConfigError: the file cannot be read or written.
    """
    given = {key: value for key, value in more.items() if value is not None}
    tables, left_out = _of_file(wish, given) if wish.source else (_typed(wish, given), [])
    added = add_servers(tables, scope, Path.cwd(), replaces=replaces)
    if not as_json:
        _show(added, left_out)
    is_trusted = trusts or (not as_json and _asked(added))
    if is_trusted:
        trust_added_servers(added, Path.cwd())
    if as_json:
        told = [{**asdict(server), "is_trusted": is_trusted or server.is_trusted} for server in added.servers]
        print_json({"path": str(added.path), "servers": told, "left_out": left_out})
    else:
        print_lines(_next(added, is_trusted=is_trusted))


def remove(name: str, scope: Scope, *, as_json: bool) -> None:
    """Remove a server from the configuration.

    Raises:
        UsageError: there is no such server.
        ConfigError: the file cannot be read or written.
    """
    path = remove_server(name, scope, Path.cwd())
    if as_json:
        print_json({"name": name, "path": str(path), "removed": True})
    else:
        print_lines([escape(f"Removed {name} from {path} and revoked its trust.")])


def _typed(wish: ServerRequest, given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    if wish.name is None or not (wish.command or wish.url):
        raise UsageError(_HOW)
    program, *arguments = wish.command or (None,)
    table = {
        "command": program,
        "args": arguments,
        "env": dict(_pair(text, "--env", passes_on=True) for text in wish.env),
        "url": wish.url,
        "headers": dict(_pair(text, "--header", passes_on=False) for text in wish.headers),
        **given,
    }
    return {wish.name: {key: value for key, value in table.items() if value not in (None, [], {})}}


def _of_file(wish: ServerRequest, given: Mapping[str, Any]) -> tuple[dict[str, dict[str, Any]], list[str]]:
    if wish.command or wish.url or wish.env or wish.headers:
        raise UsageError(
            "--from imports servers unchanged and takes no other options; edit config.toml afterwards."
        )
    path = Path(wish.source or "").expanduser()
    try:
        found = parse_client_config(read_plain_text(path), wish.name)
    except (OSError, ValueError) as error:
        raise UsageError(f"Cannot read {path}: {error}") from error
    except UsageError as error:
        raise UsageError(f"{path}: {error}. Nothing was changed.") from error
    left_out = [f"{server.name}: {', '.join(server.left_out)}" for server in found if server.left_out]
    return {server.name: {**server.table, **given} for server in found}, left_out


def _pair(text: str, option: str, *, passes_on: bool) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign and not passes_on:
        key, sign, value = text.partition(":")
    if not key.strip() or not (sign or passes_on):
        raise UsageError(f"{option} takes NAME=VALUE; {text[:20]!r} has no {'name' if sign else 'value'}.")
    return key.strip(), value.strip() if sign else f"${{{key.strip()}}}"


def _show(added: Added, left_out: Iterable[str]) -> None:
    for server in added.servers:
        print_lines(format_fields({"server": server.name, **describe_server(server), "note": _note(server)}))
    print_lines(escape(f"Ignored, not supported: {text}") for text in left_out)
    print_lines([escape(f"Wrote {added.path}.")])


def _note(server: ServerView) -> str:
    if server.problem:
        return server.problem
    if server.fetches_first:
        return f"{server.fetches_first} downloads packages, but the sandbox has no network; allow it with --network"
    return ""


def _asked(added: Added) -> bool:
    if added.needs_folder or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    question = "Trust this server?" if len(added.servers) == 1 else f"Trust these {len(added.servers)} servers?"
    return confirm(question, hint="Use --trust to skip the question.")


def _next(added: Added, *, is_trusted: bool) -> list[str]:
    names = [shlex.quote(server.name) for server in added.servers]
    if is_trusted:
        return [escape(f"Trusted. Test it with: graph-agent mcp test {name}") for name in names]
    if added.scope == "project":
        return ["Not trusted yet. Review and trust the folder with: graph-agent config trust"]
    return [
        escape(f"Not trusted yet, so it does not start. Trust it with: graph-agent mcp trust {name}")
        for name in names
    ]
