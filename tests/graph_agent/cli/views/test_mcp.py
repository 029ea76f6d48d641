import json
from pathlib import Path

import pytest

from graph_agent.cli.views.mcp import list_servers
from graph_agent.events import ServerChanged
from tests.graph_agent.cli.servers_scene import configure, mcp, settle


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return settle(tmp_path, monkeypatch)


def test_without_servers_the_list_says_how_to_add_one() -> None:
    assert "[mcp_servers.NAME]" in mcp("list").stdout
    assert json.loads(mcp("list", "--json").stdout) == {"servers": []}


def test_a_server_is_listed_trusted_tried_and_no_longer_trusted_and_its_secrets_are_never_shown(home: Path) -> None:
    configure(home)

    before = json.loads(mcp("list", "--json").stdout)["servers"][0]
    trusted = mcp("trust", "demo")
    tried = json.loads(mcp("test", "demo", "--json").stdout)
    after = json.loads(mcp("list", "--json").stdout)["servers"][0]
    mcp("trust", "demo", "--withdraw")
    withdrawn = mcp("list")

    assert (before["is_trusted"], after["is_trusted"], after["variables"]) == (False, True, ["TOKEN"])
    assert (trusted.exit_code, tried["ok"], tried["tools"][0]["name"]) == (0, True, "mcp__demo__ping")
    assert withdrawn.stdout.split("\n")[1].split()[:4] == ["demo", "not", "trusted", "stdio"]
    assert "sk-hidden" not in f"{before}{trusted.stdout}{withdrawn.stdout}"


def test_in_a_session_the_list_says_how_each_server_is_doing(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("starts", "runs", "broke", "other")
    (home / "config.toml").write_text("".join(f"[mcp_servers.{name}]\nurl = 'http://x/'\n" for name in names))
    told = (
        ServerChanged("starts", "starting"),
        ServerChanged("runs", "running", 3),
        ServerChanged("broke", "failed", reason="it ended by itself"),
    )

    list_servers(as_json=False, live={now.name: now for now in told})

    assert capsys.readouterr().out.splitlines()[1:] == [
        "starts  starting          http  http://x/",
        "runs    running, 3 tools  http  http://x/",
        "broke   failed            http  http://x/",
        "other   not trusted       http  http://x/",
        "broke: it ended by itself",
    ]
