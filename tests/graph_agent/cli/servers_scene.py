"""A home with a server configured and a workspace beside it, and the `mcp` commands typed there."""

import json
from pathlib import Path

import pytest
from typer.testing import Result

from tests.fakes.mcp_servers import demo
from tests.graph_agent.cli.commands import type_command

__all__ = ["configure", "mcp", "settle"]


def settle(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make home and workspace in a folder, and stand in the workspace; returns the home."""
    home, workspace = folder / "home", folder / "ws"
    home.mkdir()
    workspace.mkdir()
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(home))
    monkeypatch.chdir(workspace)
    return home


def mcp(*arguments: str) -> Result:
    """Type `graph-agent mcp ...` on a wide terminal."""
    return type_command("mcp", *arguments, COLUMNS="200")


def configure(home: Path, *arguments: str) -> None:
    """Configure the server `demo`, with a secret in its environment."""
    server = demo(*arguments)
    text = f"[mcp_servers.demo]\ncommand = {json.dumps(server.command)}\nargs = {json.dumps(list(server.args))}\n"
    (home / "config.toml").write_text(f"{text}env = {{ TOKEN = 'sk-hidden' }}\n")
