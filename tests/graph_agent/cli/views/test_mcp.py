import json
import tomllib
from pathlib import Path

import pytest

from graph_agent.cli.views.mcp import list_servers
from graph_agent.events import ServerChanged
from tests.fakes.pty_program import PtyProgram
from tests.graph_agent.cli.servers_scene import configure, mcp, settle


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return settle(tmp_path, monkeypatch)


def test_without_servers_the_list_says_how_to_add_one() -> None:
    assert "[mcp_servers.NAME]" in mcp("list").stdout
    assert json.loads(mcp("list", "--json").stdout) == {"servers": []}


@pytest.mark.slow
def test_a_server_can_be_listed_trusted_tested_and_revoked_without_showing_secrets(home: Path) -> None:
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


def test_in_a_session_the_list_shows_the_state_of_each_server(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("starts", "runs", "broke", "other")
    (home / "config.toml").write_text("".join(f"[mcp_servers.{name}]\nurl = 'http://x/'\n" for name in names))
    shown = (
        ServerChanged("starts", "starting"),
        ServerChanged("runs", "running", 3),
        ServerChanged("broke", "failed", reason="it ended by itself"),
    )

    list_servers(as_json=False, live={now.name: now for now in shown})

    assert capsys.readouterr().out.splitlines()[1:] == [
        "starts  starting          http  http://x/",
        "runs    running, 3 tools  http  http://x/",
        "broke   failed            http  http://x/",
        "other   not trusted       http  http://x/",
        "broke: it ended by itself",
    ]


def _written(home: Path) -> object:
    return tomllib.loads((home / "config.toml").read_text())["mcp_servers"]


def test_an_added_server_is_shown_without_secrets_and_not_started_untrusted(home: Path) -> None:
    options = ("--env", "TOKEN=sk-hidden", "--env", "HOME", "--timeout", "20", "--startup-timeout", "5")

    added = mcp("add", "tickets", *options, "--", "npx", "-y", "it", "--url")
    listed = json.loads(mcp("list", "--json").stdout)["servers"][0]

    assert _written(home) == {
        "tickets": {
            "command": "npx",
            "args": ["-y", "it", "--url"],
            "env": {"TOKEN": "sk-hidden", "HOME": "${HOME}"},
            "timeout": 20.0,
            "startup_timeout": 5.0,
        }
    }
    lines = added.stdout.splitlines()
    assert lines[:4] == [
        "server     tickets",
        "command    npx -y it --url",
        "variables  TOKEN, HOME",
        "sandbox    no network",
    ]
    assert lines[4].startswith("note       ")
    assert lines[5:] == [
        f"Wrote {home}/config.toml.",
        "Not trusted yet, so it does not start. Trust it with: graph-agent mcp trust tickets",
    ]
    assert (listed["state"], "sk-hidden" in added.stdout) == ("untrusted", False)


def test_a_program_that_is_fetched_first_needs_the_network(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "npx").write_text("#!/bin/sh\n")
    (tmp_path / "npx").chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))

    closed = mcp("add", "closed", "--", "npx", "it")
    opened = mcp("add", "opened", "--network", "--", "npx", "it")

    assert "npx downloads packages" in closed.stdout
    assert ("downloads" in opened.stdout, "sandbox  with network" in opened.stdout) == (False, True)
    assert _written(home) == {
        "closed": {"command": "npx", "args": ["it"]},
        "opened": {"command": "npx", "args": ["it"], "network": True},
    }


def test_a_url_is_added_with_headers_and_trusted_on_request(home: Path) -> None:
    headers = ("--header", "Authorization: Bearer ${HOME}", "--header", "X-A=b=c")

    added = json.loads(mcp("add", "net", "--url", "http://x/mcp", *headers, "--trust", "--json").stdout)

    assert _written(home) == {
        "net": {"url": "http://x/mcp", "headers": {"Authorization": "Bearer ${HOME}", "X-A": "b=c"}}
    }
    assert [(one["name"], one["is_trusted"]) for one in added["servers"]] == [("net", True)]
    assert json.loads(mcp("list", "--json").stdout)["servers"][0]["state"] == "will_start"


def test_servers_of_another_client_are_imported_and_ignored_settings_named(home: Path) -> None:
    Path("other.json").write_text(
        '{"mcpServers": {"a": {"command": "x", "autoApprove": ["y"]}, "b": {"url": "http://b"}}}'
    )

    added = mcp("add", "--from", "other.json")

    assert _written(home) == {"a": {"command": "x"}, "b": {"url": "http://b"}}
    assert "Ignored, not supported: a: autoApprove" in added.stdout.splitlines()


def test_a_server_can_be_removed_once(home: Path) -> None:
    mcp("add", "a", "--trust", "--", "x")

    removed = mcp("remove", "a")
    again = mcp("remove", "a")

    assert removed.stdout == f"Removed a from {home}/config.toml and revoked its trust.\n"
    assert "has no MCP server 'a'. It has: none" in str(again.exception)


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        ((), "graph-agent mcp add NAME -- COMMAND ARGS"),
        (("a",), "graph-agent mcp add NAME"),
        (("a", "--env", "=x", "--", "y"), "--env takes NAME=VALUE"),
        (("a", "--header", "x", "--url", "http://y"), "--header takes NAME=VALUE"),
        (("a", "--url", "http://y", "--", "z"), "a: should have either a command or a url"),
        (("--from", "gone.json"), "Cannot read gone.json"),
        (("--from", "gone.json", "--url", "http://y"), "--from imports servers unchanged"),
    ],
)
def test_an_incomplete_mcp_add_changes_nothing_and_explains(
    home: Path, arguments: tuple[str, ...], messages: str
) -> None:
    refused = mcp("add", *arguments)

    assert (messages in str(refused.exception), (home / "config.toml").exists()) == (True, False)


@pytest.mark.slow
def test_on_a_terminal_mcp_add_asks_whether_to_trust_the_server(home: Path) -> None:
    added = PtyProgram(["-m", "graph_agent", "mcp", "add", "a", "--", "sleep", "9"], Path.cwd(), {})

    added.sees("sleep 9")
    added.sees("Trust this server? [y/N]")
    added.types("y\r")
    added.sees("Trusted. Test it with: graph-agent mcp test a")

    assert (added.ends(), json.loads(mcp("list", "--json").stdout)["servers"][0]["state"]) == (0, "will_start")


def test_a_server_that_does_not_work_fails_its_test_with_the_reason(home: Path) -> None:
    mcp("add", "gone", "--trust", "--", "no-such-program")

    tested = mcp("test", "gone")

    assert (tested.exit_code, "program 'no-such-program' not found" in tested.stdout) == (1, True)


@pytest.mark.parametrize(("name", "messages"), [("demo", "is not trusted"), ("other", "Configured: demo")])
def test_an_untrusted_or_unknown_server_is_not_started(home: Path, name: str, messages: str) -> None:
    configure(home, "--trace", str(home / "trace"))

    refused = mcp("test", name)

    assert (messages in str(refused.exception), (home / "trace").exists()) == (True, False)


@pytest.mark.parametrize(
    ("arguments", "shown"), [(("x", "npx", "-y"), True), (("--what", "x", "--", "npx", "-y"), False)]
)
def test_an_unknown_option_of_mcp_add_explains_the_dashes(arguments: tuple[str, ...], shown: bool) -> None:
    refused = mcp("add", *arguments)

    assert (refused.exit_code, "put -- before that command" in refused.output) == (2, shown)
