"""What trust in a server is bound to: a hash of all that decides what is started or reached, never its name."""

import hashlib
import json

from graph_agent.config.settings import McpServer

__all__ = ["fingerprint"]


def fingerprint(server: McpServer) -> str:
    """SHA-256, in hex, over command, arguments, environment, address and headers, secrets included."""
    decisive = {
        "command": server.command,
        "args": list(server.args),
        "env": {name: value.get_secret_value() for name, value in server.env.items()},
        "url": server.url,
        "headers": {name: value.get_secret_value() for name, value in server.headers.items()},
    }
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()
