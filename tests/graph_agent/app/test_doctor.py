import os
from pathlib import Path

import pytest

from graph_agent.app.doctor import run_checks
from graph_agent.storage.sqlite.database import Database
from tests.fakes.openai_server import FakeOpenAI

_NAMES = [
    "versions",
    "settings",
    "trust",
    "plug-ins",
    "model",
    "search",
    "parser",
    "git",
    "sandbox",
    "web search",
    "mcp servers",
    "database",
    "schema",
    "projections",
    "shells",
    "size",
    "privacy",
    "space",
    "filesystem",
    "terminal",
]


def _environment(home: Path, **more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "GRAPH_AGENT_HOME": str(home), **more}


def test_on_a_fresh_machine_everything_that_matters_works(tmp_path: Path) -> None:
    checks = run_checks(tmp_path / "a.db", _environment(tmp_path))

    assert [check.name for check in checks] == _NAMES
    assert [check.name for check in checks if check.matters and not check.ok] == []


def test_a_server_that_answers_refuses_or_is_gone_is_told_apart_and_the_key_is_never_shown(tmp_path: Path) -> None:
    with FakeOpenAI() as server:
        told = [
            {check.name: check for check in run_checks(tmp_path / "a.db", _environment(tmp_path, **more))}["model"]
            for more in (
                {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-hidden", "GRAPH_AGENT_MODEL": "m"},
                {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": "sk-hidden"},
            )
        ]

    assert [check.ok for check in told] == [True, False]
    assert told[0].detail == f"m at {server.base_url}, answered 200"
    assert "cannot be reached: ConnectError" in told[1].detail
    assert "sk-hidden" not in str(told)


def test_settings_that_cannot_be_read_are_named_and_the_rest_is_examined_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("mode = 'no such mode'\n")

    checks = {check.name: check for check in run_checks(tmp_path / "a.db", _environment(tmp_path))}

    assert (checks["settings"].ok, checks["database"].ok, len(checks)) == (False, True, len(_NAMES))
    assert "no such mode" in checks["settings"].detail


def test_without_its_programs_the_agent_works_on_and_says_what_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    checks = {check.name: check for check in run_checks(tmp_path / "a.db", _environment(tmp_path))}

    assert (checks["git"].ok, checks["git"].matters, checks["git"].detail) == (False, False, "not found")
    assert "bubblewrap (bwrap) is not installed" in checks["sandbox"].detail


def test_a_probe_that_hangs_or_cannot_run_spoils_no_other_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bwrap").write_text("not a program")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    checks = {check.name: check for check in run_checks(tmp_path / "a.db", _environment(tmp_path))}

    assert (len(checks), "does not work here: OSError" in checks["sandbox"].detail) == (len(_NAMES), True)


async def test_what_others_can_read_is_named_and_nothing_else_is_touched(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    (tmp_path / "elsewhere.txt").touch(mode=0o644)
    async with await Database.open(path):
        pass
    path.chmod(0o644)

    checks = {check.name: check for check in run_checks(path, _environment(tmp_path))}

    privacy = checks["privacy"]
    assert (privacy.ok, privacy.hint.startswith(f"chmod go= {path}"), "elsewhere" in privacy.hint) == (
        False,
        True,
        False,
    )


def test_servers_that_would_not_be_started_are_named_with_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path))
    tables = "[mcp_servers.new]\ncommand = 'sleep'\n[mcp_servers.off]\ncommand = 'x'\nenabled = false\n"
    (tmp_path / "config.toml").write_text(tables)

    checks = {check.name: check for check in run_checks(tmp_path / "a.db", _environment(tmp_path))}

    found = checks["mcp servers"]
    assert (found.ok, found.matters, found.detail) == (False, False, "0 of 2 would be started; new: not trusted")
