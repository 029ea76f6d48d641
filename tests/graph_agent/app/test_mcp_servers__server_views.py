from pathlib import Path

import pytest

from graph_agent.app.mcp_servers import configured_servers, trust_server
from graph_agent.errors import UsageError
from tests.graph_agent.cli.servers_scene import settle

CONFIG = """
[mcp_servers.new]
command = "sleep"

[mcp_servers.off]
command = "sleep"
enabled = false

[mcp_servers.missing]
command = "no-such-program"

[mcp_servers.unset]
url = "http://user:pw@x/mcp"
headers = { A = "${NO_SUCH_VARIABLE}" }
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return settle(tmp_path, monkeypatch)


def test_each_server_says_whether_it_would_be_started_and_why_not(home: Path) -> None:
    (home / "config.toml").write_text(CONFIG)
    for name in ("missing", "unset"):
        trust_server(name)

    assert [(server.name, server.state, server.problem, server.reached_by) for server in configured_servers()] == [
        ("new", "untrusted", "", "sleep"),
        ("off", "disabled", "", "sleep"),
        (
            "missing",
            "unusable",
            "program 'no-such-program' not found; correct `command`, or install it",
            "no-such-program",
        ),
        (
            "unset",
            "unusable",
            "its settings use ${NO_SUCH_VARIABLE}, which is not set in the environment",
            "http://x/mcp",
        ),
    ]


def test_a_name_that_is_not_there_is_told_with_those_that_are(home: Path) -> None:
    (home / "config.toml").write_text(CONFIG)

    with pytest.raises(UsageError, match="no MCP server 'other'; configured: new, off, missing, unset"):
        trust_server("other")
