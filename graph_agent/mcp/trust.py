"""Which servers the user trusts: by a hash of everything that decides what is started or reached, never by name."""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graph_agent.config.settings import McpServer
from graph_agent.errors import StorageError

__all__ = ["TrustFile", "fingerprint"]


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


class TrustFile:
    """The fingerprints in a private file: `{"servers": {fingerprint: {"name", "at"}}}`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def has(self, server: McpServer) -> bool:
        """Whether exactly this server may be started.

        Raises:
            StorageError: the file is there and cannot be read.
        """
        return fingerprint(server) in self._read()

    def add(self, name: str, server: McpServer, at: str) -> None:
        """Trust it from now on; `at` is an ISO time.

        Raises:
            StorageError: the file cannot be read or written.
        """
        self._write({**self._read(), fingerprint(server): {"name": name, "at": at}})

    def forget(self, name: str) -> None:
        """Withdraw the trust in everything that was trusted under a name.

        Raises:
            StorageError: the file cannot be read or written.
        """
        known = self._read()
        kept = {mark: entry for mark, entry in known.items() if entry.get("name") != name}
        if kept != known:
            self._write(kept)

    def _read(self) -> dict[str, Any]:
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise StorageError(
                f"{self._path} cannot be read: {error}. Move it away and trust the servers again."
            ) from error
        servers = found.get("servers") if isinstance(found, dict) else None
        if not isinstance(servers, dict) or not all(isinstance(entry, dict) for entry in servers.values()):
            raise StorageError(f"{self._path} is no list of servers. Move it away and trust the servers again.")
        return servers

    def _write(self, servers: Mapping[str, Any]) -> None:
        text = json.dumps({"servers": dict(servers)}, indent=2) + "\n"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=".mcp-trust-")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(self._path)
        except OSError as error:
            raise StorageError(f"{self._path} cannot be written: {error.strerror or error}.") from error
