"""Resolves a server's settings on this machine: program, environment, headers; and what trust in it is bound to.

And its files in the folder of the logs, among them the record of the tools that were refused.
"""

import hashlib
import json
import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graph_agent.config.paths import read_plain_text, replace_text
from graph_agent.config.settings import McpServer
from graph_agent.wording import format_count
from tools.programs import find_program, missing_reason
from tools.shell_ops.shell_command import child_environment

__all__ = [
    "ServerUnreachable",
    "expand_variables",
    "explain_refused_tools",
    "fingerprint",
    "package_runner",
    "read_refused_tools",
    "record_refused_tools",
    "server_environment",
    "server_file",
    "server_headers",
    "server_program",
]

_log = logging.getLogger(__name__)
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SOURCES = {
    "npx": "it comes with Node.js",
    "npm": "it comes with Node.js",
    "node": "it is Node.js",
    "bunx": "it comes with Bun",
    "uvx": "it comes with uv, https://docs.astral.sh/uv",
    "uv": "see https://docs.astral.sh/uv",
    "docker": "it is part of Docker",
}
"""Where the programs come from that servers are usually started with."""
_PACKAGE_RUNNERS = ("npx", "npm", "bunx", "deno", "uvx", "uv", "pipx", "pip", "docker", "podman")


class ServerUnreachable(Exception):
    """The server cannot be started or reached; the message says why, without secrets."""


def expand_variables(text: str, environment: Mapping[str, str]) -> str:
    """The text with each `${NAME}` replaced.

    Raises:
        ServerUnreachable: a variable is not set.
    """

    def value(found: re.Match[str]) -> str:
        if found[1] not in environment:
            raise ServerUnreachable(f"its settings use ${{{found[1]}}}, which is not set in the environment")
        return environment[found[1]]

    return _VARIABLE.sub(value, text)


def server_environment(server: McpServer) -> dict[str, str]:
    """The environment of its program: a minimal one, and what its settings add.

    Raises:
        ServerUnreachable: a variable is not set.
    """
    own = {name: expand_variables(value.get_secret_value(), os.environ) for name, value in server.env.items()}
    return {**child_environment(os.environ), **own}


def server_program(server: McpServer, environment: Mapping[str, str]) -> str:
    """The path of its program.

    Raises:
        ServerUnreachable: there is none.
    """
    name = server.command or ""
    program = find_program(name, environment["PATH"])
    if program is None:
        reason = missing_reason(name, environment["PATH"])
        hint = f"install it: {_SOURCES[name]}" if name in _SOURCES else "correct `command`, or install it"
        if reason != "not found":
            hint = "write its path as `command` if you trust it"
        raise ServerUnreachable(f"program {name!r} {reason}; {hint}")
    return program


def package_runner(server: McpServer) -> str:
    """Its command if that downloads a package before running it; else empty."""
    name = Path(server.command or "").name
    return name if name in _PACKAGE_RUNNERS else ""


def server_headers(server: McpServer) -> dict[str, str]:
    """The headers of each request to it.

    Raises:
        ServerUnreachable: a variable is not set.
    """
    return {name: expand_variables(value.get_secret_value(), os.environ) for name, value in server.headers.items()}


def fingerprint(server: McpServer) -> str:
    """SHA-256, in hex, of everything that decides what is started or reached: with secrets, without the name."""
    decisive: dict[str, Any] = {
        "command": server.command,
        "args": list(server.args),
        "env": {name: value.get_secret_value() for name, value in server.env.items()},
        "url": server.url,
        "headers": {name: value.get_secret_value() for name, value in server.headers.items()},
    }
    if not server.sandbox or server.network:
        decisive["outside"] = [not server.sandbox, server.network]
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()


def server_file(folder: Path, name: str, ending: str) -> Path:
    """A server's own file in the folder of the logs."""
    safe = "".join(char if char.isalnum() or char in "-_" else "_" for char in name)
    return folder / f"mcp-{safe}{ending}"


_REFUSED = ".refused.json"
_MAX_NAMED = 10
"""Refused tools that a message names."""


def record_refused_tools(folder: Path, name: str, server: McpServer, refused: Mapping[str, str]) -> None:
    """Record, for `doctor`, the tools that a server listed last with a schema that no provider accepts, and why."""
    path = server_file(folder, name, _REFUSED)
    try:
        if refused:
            replace_text(path, json.dumps({"server": fingerprint(server), "refused": dict(refused)}))
        else:
            path.unlink(missing_ok=True)
    except OSError:
        _log.warning("the refused tools could not be written to %s", path, exc_info=True)


def explain_refused_tools(refused: Mapping[str, str]) -> str:
    """The rest of a sentence that begins with the server's name."""
    listed = "; ".join(f"{name:.64} ({problem:.200})" for name, problem in [*refused.items()][:_MAX_NAMED])
    if len(refused) > _MAX_NAMED:
        listed += f"; and {len(refused) - _MAX_NAMED} more"
    return f"lists {format_count(len(refused), 'tool')} with an invalid schema, left out: {listed}"


def read_refused_tools(folder: Path, name: str, server: McpServer) -> dict[str, str]:
    """What was recorded when this server last started, if it was configured as it is now."""
    try:
        found = json.loads(read_plain_text(server_file(folder, name, _REFUSED)))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict) or found.get("server") != fingerprint(server):
        return {}
    refused = found.get("refused")
    return {str(tool): str(reason) for tool, reason in refused.items()} if isinstance(refused, dict) else {}
