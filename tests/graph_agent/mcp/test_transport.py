import socket
import sys
from pathlib import Path

import pytest

from graph_agent.config.settings import McpServer
from graph_agent.mcp.client import Signals, open_mcp_session
from graph_agent.mcp.settings import ServerUnreachable
from graph_agent.mcp.transport import ServerLog, open_streams
from tests.fakes.walls import sandbox
from tools.sandbox import Sandbox, SandboxBackend, SandboxRules

_LOOKS = """
import json, os, socket, sys
from mcp.server.fastmcp import FastMCP

server = FastMCP("looks", log_level="ERROR")


@server.tool()
def look(home: str, port: int) -> str:
    told = []
    for path in (os.path.join(home, "planted"), "made"):
        try:
            open(path, "w").close()
            told.append("wrote")
        except OSError:
            told.append("kept in")
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
        told.append("reached")
    except OSError:
        told.append("unreached")
    return " ".join(told)


server.run()
"""


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "kept in wrote unreached"),
        ({"network": True}, "kept in wrote reached"),
        ({"sandbox": False}, "wrote wrote reached"),
    ],
)
async def test_a_server_runs_in_the_sandbox_as_far_as_its_settings_say(
    tmp_path: Path, settings: dict[str, bool], told: str
) -> None:
    workspace, program = tmp_path / "ws", tmp_path / "looks.py"
    workspace.mkdir()
    program.write_text(_LOOKS)
    server = McpServer.model_validate({"command": sys.executable, "args": [str(program)], **settings})
    walls = sandbox("bubblewrap", workspace)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        async with open_mcp_session(server, workspace, ServerLog(tmp_path / "log"), Signals(), walls) as talk:
            result = await talk.call("look", {"home": str(Path.home()), "port": port}, _unheard)

    assert [part.text for part in result.content if part.type == "text"] == [told]
    assert [path.name for path in workspace.iterdir()] == ["made"]


async def _unheard(progress: float, total: float | None, message: str | None) -> None:
    """Nobody follows."""


async def test_a_server_is_not_started_where_a_sandbox_is_required_and_there_is_none(tmp_path: Path) -> None:
    walls = Sandbox(
        SandboxRules((tmp_path,)), is_required=True, look=lambda: SandboxBackend("none", why="no means")
    )

    with pytest.raises(ServerUnreachable, match="the sandbox is unavailable: no means"):
        async with open_streams(McpServer(command=sys.executable), tmp_path, ServerLog(tmp_path / "log"), walls):
            pass
