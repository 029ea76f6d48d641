"""What trust in a server is bound to: a hash of all that decides what is started or reached, never its name."""

import hashlib
import json
from typing import Any

from graph_agent.config.settings import McpServer

__all__ = ["fingerprint"]


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
