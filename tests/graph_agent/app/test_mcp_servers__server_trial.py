from pathlib import Path

import pytest

from graph_agent.app.mcp_servers import add_servers, trust_added_servers, try_server
from tests.fakes.mcp_servers import demo
from tests.graph_agent.cli.servers_scene import settle

BROKEN = "import sys; print('first', file=sys.stderr); sys.exit('no such database')"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return settle(tmp_path, monkeypatch)


def _add(*command: str) -> None:
    table = {"command": command[0], "args": list(command[1:]), "sandbox": False}
    trust_added_servers(add_servers({"a": table}, "user", Path.cwd()), Path.cwd())


async def test_a_server_that_works_tells_its_tools_with_their_risk_and_how_long_it_took() -> None:
    server = demo()
    _add(str(server.command), *server.args)

    tried = await try_server("a", Path.cwd())

    assert tried.tools[0] == (
        "mcp__a__ping",
        "medium",
        "Answers. Its argument is named like something that clients of ours inject.",
    )
    assert (tried.warnings, 0 < tried.seconds < 15) == ((), True)


async def test_a_server_that_ends_at_once_tells_what_it_wrote_last() -> None:
    _add(str(demo().command), "-c", BROKEN)

    tried = await try_server("a", Path.cwd())

    assert (tried.tools, tried.said) == ((), ("first", "no such database"))
    assert "last line: no such database" in tried.warnings[0]
