import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from graph_agent.cli.main import app
from tests.fakes.mcp_servers import demo


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home, workspace = tmp_path / "home", tmp_path / "ws"
    home.mkdir()
    workspace.mkdir()
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(home))
    monkeypatch.chdir(workspace)
    return home


def _mcp(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["mcp", *arguments], env={"COLUMNS": "200"})


def _configure(home: Path, *arguments: str) -> None:
    server = demo(*arguments)
    text = f"[mcp_servers.demo]\ncommand = {json.dumps(server.command)}\nargs = {json.dumps(list(server.args))}\n"
    (home / "config.toml").write_text(f"{text}env = {{ TOKEN = 'sk-hidden' }}\n")


def test_without_servers_the_list_says_how_to_add_one() -> None:
    assert "[mcp_servers.NAME]" in _mcp("list").stdout
    assert json.loads(_mcp("list", "--json").stdout) == {"servers": []}


def test_a_server_is_listed_trusted_tried_and_no_longer_trusted_and_its_secrets_are_never_shown(home: Path) -> None:
    _configure(home)

    before = json.loads(_mcp("list", "--json").stdout)["servers"][0]
    trusted = _mcp("trust", "demo")
    tried = json.loads(_mcp("test", "demo", "--json").stdout)
    after = json.loads(_mcp("list", "--json").stdout)["servers"][0]
    _mcp("trust", "demo", "--withdraw")
    withdrawn = _mcp("list")

    assert (before["is_trusted"], after["is_trusted"], after["variables"]) == (False, True, ["TOKEN"])
    assert (trusted.exit_code, tried["ok"], tried["tools"][0]["name"]) == (0, True, "mcp__demo__ping")
    assert withdrawn.stdout.split("\n")[1].split()[:3] == ["demo", "no", "stdio"]
    assert "sk-hidden" not in f"{before}{trusted.stdout}{withdrawn.stdout}"
