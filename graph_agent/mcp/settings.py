"""What a server's settings come to on this machine: program, variables, headers. Starts and reaches nothing.

What trust in a server is bound to: a hash of all that decides what is started or reached, never its name.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graph_agent.config.settings import McpServer
from tools.paths import find_program
from tools.shell_ops.shell_command import child_environment

__all__ = [
    "ServerUnreachable",
    "expanded",
    "fetches_first",
    "fingerprint",
    "server_environment",
    "server_headers",
    "server_program",
]

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_FROM = {
    "npx": "it comes with Node.js",
    "npm": "it comes with Node.js",
    "node": "it is Node.js",
    "bunx": "it comes with Bun",
    "uvx": "it comes with uv, https://docs.astral.sh/uv",
    "uv": "see https://docs.astral.sh/uv",
    "docker": "it is Docker's",
}
"""Where the programs come from that servers are usually started with."""

_FETCHING = ("npx", "npm", "bunx", "deno", "uvx", "uv", "pipx", "pip", "docker", "podman")


class ServerUnreachable(Exception):
    """The server cannot be started or reached; the message says why, without secrets."""


def expanded(text: str, environment: Mapping[str, str]) -> str:
    """The text with each `${NAME}` replaced.

    Raises:
        ServerUnreachable: a variable is not set.
    """

    def value(found: re.Match[str]) -> str:
        if found[1] not in environment:
            raise ServerUnreachable(f"its settings name ${{{found[1]}}}, which is not set in the environment")
        return environment[found[1]]

    return _VARIABLE.sub(value, text)


def server_environment(server: McpServer) -> dict[str, str]:
    """What its program gets: a minimal environment, and what its settings add.

    Raises:
        ServerUnreachable: a variable is not set.
    """
    own = {name: expanded(value.get_secret_value(), os.environ) for name, value in server.env.items()}
    return {**child_environment(os.environ), **own}


def server_program(server: McpServer, environment: Mapping[str, str]) -> str:
    """The path of its program.

    Raises:
        ServerUnreachable: there is none.
    """
    wanted = server.command or ""
    program = find_program(wanted, environment["PATH"])
    if program is None:
        way = f"install it: {_FROM[wanted]}" if wanted in _FROM else "correct `command`, or install it"
        raise ServerUnreachable(f"there is no program {wanted!r}; {way}")
    return program


def fetches_first(server: McpServer) -> str:
    """Its command where that fetches a program from the network before running it; else empty."""
    name = Path(server.command or "").name
    return name if name in _FETCHING else ""


def server_headers(server: McpServer) -> dict[str, str]:
    """The headers of each request to it.

    Raises:
        ServerUnreachable: a variable is not set.
    """
    return {name: expanded(value.get_secret_value(), os.environ) for name, value in server.headers.items()}


def fingerprint(server: McpServer) -> str:
    """SHA-256, in hex, over command, arguments, environment, address, headers and what it may do; with secrets."""
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
