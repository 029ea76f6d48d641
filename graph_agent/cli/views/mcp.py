"""The `mcp` commands: list, add, remove, trust and test MCP servers.

Each raises ConfigError if a config file is invalid or cannot be written, and UsageError if an argument is wrong.
"""

import asyncio
import shlex
import sys
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import typer

from graph_agent.app.mcp_servers import (
    Added,
    Scope,
    ServerView,
    add_servers,
    configured_servers,
    log_in_at,
    log_out_at,
    remove_server,
    revoke_server_trust,
    trust_added_servers,
    trust_server,
    try_server,
)
from graph_agent.cli.log_file import log_to_file
from graph_agent.cli.views.format import confirm
from graph_agent.cli.views.settings import current_project, print_ignored_files
from graph_agent.cli.views.table import (
    format_columns,
    format_fields,
    format_table,
    print_json,
    print_lines,
    print_result,
    print_text,
)
from graph_agent.config.mcp_servers import parse_client_config
from graph_agent.config.paths import read_plain_text
from graph_agent.errors import UsageError
from graph_agent.events import ServerChanged
from graph_agent.wording import escape, format_count

__all__ = ["add_server", "list_servers", "log_in", "log_out", "print_test", "remove", "trust"]

_NONE = (
    "No MCP servers. Add one with: graph-agent mcp add NAME -- COMMAND ARGS, "
    "or with a table [mcp_servers.NAME] in config.toml."
)
_HOW = (
    "Name the server and its command: graph-agent mcp add NAME -- COMMAND ARGS. "
    "Or give its address with --url URL, or import servers with --from FILE."
)
_STATES = {
    "will_start": "will start",
    "untrusted": "not trusted",
    "disabled": "disabled",
    "unusable": "cannot start",
}


def list_servers(*, as_json: bool, live: Mapping[str, ServerChanged] = MappingProxyType({})) -> None:
    """Print every configured server and whether it can start; in a session, its current state."""
    servers = configured_servers()
    print_ignored_files(current_project())

    def format_state(server: ServerView) -> str:
        now = live.get(server.name)
        if now is None:
            return _STATES[server.state]
        return f"running, {format_count(now.tools, 'tool')}" if now.state == "running" else now.state

    columns = {
        "SERVER": lambda server: server.name,
        "STATE": format_state,
        "VIA": lambda server: server.transport,
        "COMMAND OR ADDRESS": lambda server: server.reached_by,
    }
    table = format_columns(servers, columns) if servers else _NONE
    print_result({"servers": list(map(asdict, servers))}, table, as_json=as_json)
    if not as_json:
        for one in servers:
            if problem := live[one.name].reason if one.name in live else one.problem:
                print_text(f"{one.name}: {problem}")
            if one.refused_tools:
                print_text(one.refusal)


def trust(name: str, *, withdraw: bool, as_json: bool) -> None:
    """Trust a server and show what it runs, or revoke its trust."""
    if withdraw:
        revoke_server_trust(name)
        text = f"Trust revoked: {name} does not start until you trust it again."
        print_result({"name": name, "is_trusted": False}, text, as_json=as_json)
        return
    server = trust_server(name)
    print_result(asdict(server), _server_fields("trusted", server), as_json=as_json)
    if not as_json:
        print_text(f"Test it with: graph-agent mcp test {shlex.quote(server.name)}")


def print_test(name: str, *, as_json: bool) -> None:
    """Start a server and print its tools; exit code 1 with its output if it does not work."""
    log_to_file()
    trial = asyncio.run(try_server(name, Path.cwd()))
    if as_json:
        print_json(
            {
                "server": name,
                "ok": not trial.warnings,
                "seconds": round(trial.seconds, 3),
                "tools": [{"name": tool, "risk": risk, "description": about} for tool, risk, about in trial.tools],
                "warnings": list(trial.warnings),
                "stderr": list(trial.said),
            }
        )
    elif trial.warnings:
        print_text(*trial.warnings, *(f"  | {line}" for line in trial.said))
    else:
        count = format_count(len(trial.tools), "tool") if trial.tools else "no tool"
        print_text(f"{name} started in {trial.seconds:.1f} s and has {count}.")
        print_lines(format_table(("TOOL", "RISK", "DESCRIPTION"), trial.tools) if trial.tools else [])
    if trial.warnings:
        raise typer.Exit(1)


def log_in(name: str, *, opens_browser: bool, as_json: bool) -> None:
    """Log in to a server: print the address of the login page, open it, and wait for the answer."""
    log_to_file()

    async def show(address: str) -> None:
        sys.stderr.write(f"Log in with a browser on this machine: {escape(address)}\n")
        sys.stderr.flush()
        if opens_browser and urlsplit(address).scheme in ("http", "https"):
            await asyncio.to_thread(webbrowser.open, address)

    is_done = asyncio.run(log_in_at(name, Path.cwd(), show))
    text = f"Logged in to {name}. Log out with: graph-agent mcp logout {shlex.quote(name)}"
    result = {"name": name, "logged_in": is_done}
    print_result(result, text if is_done else f"{name} requires no login; nothing was changed.", as_json=as_json)


def log_out(name: str, *, as_json: bool) -> None:
    """Forget the tokens of a server."""
    is_known = log_out_at(name, Path.cwd())
    text = f"Logged out of {name}." if is_known else f"Not logged in to {name}; nothing was changed."
    print_result({"name": name, "logged_out": is_known}, text, as_json=as_json)


def add_server(
    name: str | None,
    command: Sequence[str],
    *,
    source: str | None,
    connection: Mapping[str, Any],
    options: Mapping[str, Any],
    scope: Scope,
    replaces: bool,
    trusts: bool,
    as_json: bool,
) -> None:
    """Add servers to the configuration, show them, and trust them if the user agrees or `trusts`.

    Args:
        source: a file of another client, whose servers are imported.
        connection: `url`, and the texts of `env` and `headers`.
        options: settings that are written as they are, where they are not None.
    """
    given = {key: value for key, value in options.items() if value is not None}
    if source:
        if command or any(connection.values()):
            raise UsageError(
                "--from imports servers unchanged and takes no other options; edit config.toml afterwards."
            )
        tables, ignored = _import_tables(Path(source).expanduser(), name, given)
    elif name is None or not (command or connection["url"]):
        raise UsageError(_HOW)
    else:
        tables, ignored = {name: _typed_table(command, connection, given)}, []
    added = add_servers(tables, scope, Path.cwd(), replaces=replaces)
    if not as_json:
        for server in added.servers:
            print_lines(_server_fields("server", server, with_note=True))
        print_text(*(f"Ignored, not supported: {text}" for text in ignored), f"Wrote {added.path}.")
    is_trusted = trusts or (not as_json and _confirm_trust(added))
    if is_trusted:
        trust_added_servers(added, Path.cwd())
    servers = [{**asdict(server), "is_trusted": is_trusted or server.is_trusted} for server in added.servers]
    result = {"path": str(added.path), "servers": servers, "left_out": ignored}
    print_result(result, map(escape, _next_steps(added, is_trusted=is_trusted)), as_json=as_json)


def remove(name: str, scope: Scope, *, as_json: bool) -> None:
    """Remove a server from the configuration."""
    path = remove_server(name, scope, Path.cwd())
    result = {"name": name, "path": str(path), "removed": True}
    print_result(result, f"Removed {name} from {path} and revoked its trust.", as_json=as_json)


def _typed_table(command: Sequence[str], connection: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the server that the command line describes."""
    program, *arguments = command or (None,)
    table = {
        "command": program,
        "args": arguments,
        "env": dict(_parse_pair(text, "--env", passes_on=True) for text in connection["env"]),
        "url": connection["url"],
        "headers": dict(_parse_pair(text, "--header", passes_on=False) for text in connection["headers"]),
        **given,
    }
    return {key: value for key, value in table.items() if value not in (None, [], {})}


def _import_tables(
    path: Path, name: str | None, given: Mapping[str, Any]
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The settings of each server of another client's file, and what is ignored of each."""
    try:
        servers = parse_client_config(read_plain_text(path), name)
    except (OSError, ValueError) as error:
        raise UsageError(f"Cannot read {path}: {error}") from error
    except UsageError as error:
        raise UsageError(f"{path}: {error}. Nothing was changed.") from error
    ignored = [f"{server.name}: {', '.join(server.left_out)}" for server in servers if server.left_out]
    return {server.name: {**server.table, **given} for server in servers}, ignored


def _parse_pair(text: str, option: str, *, passes_on: bool) -> tuple[str, str]:
    """Name and value; with `passes_on`, a name alone stands for the user's own variable."""
    key, sign, value = text.partition("=")
    if not sign and not passes_on:
        key, sign, value = text.partition(":")
    if not key.strip() or not (sign or passes_on):
        raise UsageError(f"{option} takes NAME=VALUE; {text[:20]!r} has no {'name' if sign else 'value'}.")
    return key.strip(), value.strip() if sign else f"${{{key.strip()}}}"


def _server_fields(label: str, server: ServerView, *, with_note: bool = False) -> Iterator[str]:
    """Name, command or address, variables or headers, and sandbox of a server."""
    is_program = server.transport == "stdio"
    note = server.problem
    if not note and server.fetches_first:
        note = f"{server.fetches_first} downloads packages, but the sandbox has no network; allow it with --network"
    network = "with network" if server.network else "no network"
    return format_fields(
        {
            label: server.name,
            "command" if is_program else "address": server.reached_by,
            "variables" if is_program else "headers": ", ".join(server.variables),
            "sandbox": "" if server.transport == "http" else network if server.sandbox else "off",
            "note": note if with_note else "",
        }
    )


def _confirm_trust(added: Added) -> bool:
    if added.needs_folder or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    question = "Trust this server?" if len(added.servers) == 1 else f"Trust these {len(added.servers)} servers?"
    return confirm(question, hint="Use --trust to skip the question.")


def _next_steps(added: Added, *, is_trusted: bool) -> list[str]:
    if not is_trusted and added.scope == "project":
        return ["Not trusted yet. Review and trust the folder with: graph-agent config trust"]
    hint = (
        "Trusted. Test it with: graph-agent mcp test"
        if is_trusted
        else "Not trusted yet, so it does not start. Trust it with: graph-agent mcp trust"
    )
    return [f"{hint} {shlex.quote(server.name)}" for server in added.servers]
