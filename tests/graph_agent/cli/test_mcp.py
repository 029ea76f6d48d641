import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from graph_agent.cli.main import app
from tests.fakes.mcp_servers import demo


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _mcp(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["mcp", *arguments], env={"COLUMNS": "200"})


def _configure(home: Path, *arguments: str) -> None:
    server = demo(*arguments)
    text = f"[mcp_servers.demo]\ncommand = {json.dumps(server.command)}\nargs = {json.dumps(list(server.args))}\n"
    (home / "config.toml").write_text(f"{text}env = {{ TOKEN = 'sk-hidden' }}\n")


def test_a_server_that_does_not_work_fails_its_test_with_the_reason(home: Path) -> None:
    (home / "config.toml").write_text("[mcp_servers.gone]\ncommand = 'no-such-program'\n")
    _mcp("trust", "gone")

    tried = _mcp("test", "gone")

    assert (tried.exit_code, "there is no program 'no-such-program'" in tried.stdout) == (1, True)


@pytest.mark.parametrize(("name", "said"), [("demo", "is not trusted"), ("other", "configured: demo")])
def test_what_is_not_trusted_or_not_there_is_not_started(home: Path, name: str, said: str) -> None:
    _configure(home, "--trace", str(home / "trace"))

    refused = _mcp("test", name)

    assert (said in str(refused.exception), (home / "trace").exists()) == (True, False)
