import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from graph_agent.config.paths import ServerPath
from graph_agent.errors import UsageError
from graph_agent.storage import open_read_store
from tests.fakes.postgres_server import PASSWORD, PostgresServer


class Host:
    """One user's home and workspace; two of them stand for two hosts."""

    def __init__(self, folder: Path, url: str, workspace: Path) -> None:
        self.workspace = workspace
        workspace.mkdir(exist_ok=True)
        (folder / "home").mkdir(parents=True)
        (folder / "home" / "config.toml").write_text('sandbox = "off"\n')
        self.environment = {**os.environ, "GRAPH_AGENT_HOME": str(folder / "home"), "GRAPH_AGENT_DB": url}

    def start(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "graph_agent", *words],
            cwd=self.workspace,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *words: str) -> tuple[int, str]:
        process = self.start(*words)
        output, errors = process.communicate(timeout=60)
        return process.returncode, output + errors


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(UsageError, match=r"pip install 'graph-agent\[postgres\]'"):
        open_read_store(ServerPath.from_url("postgresql://127.0.0.1:1/x", tmp_path))


@pytest.mark.slow
def test_a_question_asked_on_one_host_is_answered_on_another_and_a_kill_is_asked_about(
    postgres: PostgresServer, place: ServerPath, tmp_path: Path
) -> None:
    url = postgres.url(place.url.partition("?")[0].rpartition("/")[2], with_password=True)
    one, two = Host(tmp_path / "one", url, tmp_path / "w"), Host(tmp_path / "two", url, tmp_path / "v")

    code, said = one("run", "run touch made", "-m", "offline", "--thread", "shared")
    assert (code, "touch made" in said) == (3, True)
    asked = json.loads(two("approvals", "list", "--json")[1])
    [call] = asked["approvals"]
    assert two("approvals", "approve", call["call_id"])[0] == 0
    assert one("run", "--resume", "shared", "-m", "offline")[0] == 0
    assert (one.workspace / "made").exists()

    words = ("-m", "offline", "--thread", "shared", "--dangerously-skip-permissions")
    killed = one.start("run", "run touch begun; sleep 60", *words)
    started = time.monotonic()
    while not (one.workspace / "begun").exists() and time.monotonic() < started + 40:
        time.sleep(0.1)
    assert two("run", "hello", "-m", "offline", "--thread", "shared")[0] == 7
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    code, said = one("run", "--resume", "shared", "-m", "offline")
    assert (code, "interrupted" in said) == (4, True)
    assert PASSWORD.replace(" ", "%20") not in said
    assert one("history", "shared")[0] == two("inspect", "shared")[0] == 0
