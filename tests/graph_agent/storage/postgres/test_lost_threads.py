import os
import signal
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.fakes.forked_command import start_forked
from tests.fakes.openai_server import TC, TXT
from tests.fakes.postgres_server import PostgresServer
from tests.scenarios.command import NO_SANDBOX, scripted, until

pytestmark = pytest.mark.slow

_STOLEN = (
    "UPDATE graph_agent.leases SET owner_token = 'a thief', expires_at = clock_timestamp() + interval '1 hour'"
)


def _rows(url: str, statement: str) -> list[Any]:
    with psycopg.connect(url) as connection:
        return connection.execute(statement.encode()).fetchall()


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("stands_still", [False, True])
def test_a_run_that_loses_its_thread_ends_its_command_and_records_nothing(
    postgres: PostgresServer, postgres_template: str, tmp_path: Path, stands_still: bool
) -> None:
    url = postgres.create_database(postgres_template)
    command = {"command": "echo $$ > pid; trap '' TERM; sleep 30; echo late > effect"}
    with scripted(tmp_path, [TC("c1", "bash", command), TXT("done")], settings=NO_SANDBOX) as agent:
        arguments = ("run", "go", "--thread", "t", "--mode", "bypassPermissions", "--db", url)
        run = start_forked(arguments, agent.workspace, agent.env, tmp_path / "stderr")
        until(lambda: bool(_text(agent.workspace / "pid")), 20)
        before = _rows(url, "SELECT * FROM graph_agent.journal")
        if stands_still:
            os.kill(run.pid, signal.SIGSTOP)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(_STOLEN.encode())
        began = time.monotonic()
        if stands_still:
            os.kill(run.pid, signal.SIGCONT)
        code = run.wait()
        seconds = time.monotonic() - began
        requests = len(agent.server.bodies)

    assert not _is_running(int(_text(agent.workspace / "pid")))
    assert (_rows(url, "SELECT * FROM graph_agent.journal"), requests) == (before, 1)
    assert "lost its lease on" in (tmp_path / "stderr").read_text()
    assert code == 7
    assert seconds < 10
    postgres.drop_database(url)


def _text(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""
