"""Many sessions at once on one database: each gets to its end, and none hears of a lock."""

import asyncio
import gc
import random
import sqlite3
import subprocess
import sys
import tracemalloc
from collections.abc import Sequence
from contextlib import AsyncExitStack, closing
from pathlib import Path

import pytest

from graph_agent import open_session
from tests.fakes.openai_server import TC, TXT, FakeOpenAI
from tests.fakes.scripted_model import ScriptedModel, calls, text
from tests.scenarios.command import Command
from tests.scenarios.stage import Stage

_STEPS = 6


async def _play(database: Path, thread: str) -> tuple[str, str | None]:
    replies = [calls((f"{thread}-{step}", "read_a")) for step in range(_STEPS)]
    async with Stage(database, ScriptedModel(*replies, text(f"{thread} is done"))).open_session(
        thread=thread
    ) as session:
        rest = await session.send("go")
        return rest.status, rest.answer


async def test_eight_sessions_at_once_on_one_database_all_come_to_their_end(tmp_path: Path) -> None:
    threads = [f"thread-{number}" for number in range(8)]

    ended = await asyncio.gather(*(_play(tmp_path / "agent.db", thread) for thread in threads))

    assert ended == [("done", f"{thread} is done") for thread in threads]
    assert _outcomes(tmp_path / "agent.db") == [(thread, "success", _STEPS) for thread in threads]


async def test_a_session_takes_less_than_two_megabytes_beside_others_in_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("GRAPH_AGENT_MODEL", "fake")
    with FakeOpenAI() as server:
        monkeypatch.setenv("GRAPH_AGENT_BASE_URL", server.base_url)
        async with AsyncExitStack() as opened:
            for number in range(5):
                if number == 2:
                    tracemalloc.start()
                session = await opened.enter_async_context(open_session(workspace=tmp_path))
                await session.send("hello")
            gc.collect()
            taken, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()

    assert taken / 3 < 2_000_000


def _outcomes(database: Path) -> list[tuple[str, str, int]]:
    """How many calls of each thread have which status."""
    if not database.exists():
        return []
    with closing(sqlite3.connect(database)) as connection, connection:
        found = connection.execute("SELECT thread_id, status, count(*) FROM call_log GROUP BY 1, 2 ORDER BY 1, 2")
        outcomes = found.fetchall()
    connection.close()
    return outcomes


class _Flock:
    """Processes of the real command, one for each thread that is not done; some are killed and started again."""

    def __init__(self, command: Command, threads: Sequence[str], seed: int) -> None:
        self._command = command
        self._database = command.folder / "home" / "data" / "graph-agent.db"
        self._open = list(threads)
        self._random = random.Random(seed)
        self.kills = 0
        self.said: list[str] = []

    def run(self, kills: int) -> None:
        """Until every thread is done."""
        while self._open:
            running = {thread: self._start(thread) for thread in self._open}
            for thread in self._random.sample(self._open, min(kills - self.kills, len(self._open))):
                try:
                    running[thread].wait(self._random.uniform(0.3, 2))
                except subprocess.TimeoutExpired:
                    running[thread].kill()
                    self.kills += 1
            self.said += [process.communicate(timeout=240)[1] for process in running.values()]
            self._open = [thread for thread, process in running.items() if process.returncode != 0]

    def _start(self, thread: str) -> subprocess.Popen[str]:
        is_begun = thread in {outcome[0] for outcome in _outcomes(self._database)}
        words = ["run", "--resume", thread] if is_begun else ["run", "go", "--thread", thread]
        return subprocess.Popen(
            [sys.executable, "-m", "graph_agent", *words],
            cwd=self._command.workspace,
            env=self._command.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.mark.sweep
@pytest.mark.timeout(900)
def test_thirty_two_processes_on_one_database_come_to_their_end_though_they_are_killed(tmp_path: Path) -> None:
    replies = [TC(f"call-{step}", "glob", {"pattern": f"*{step}"}, delay_s=0.1) for step in range(_STEPS)]
    threads = [f"thread-{number:02}" for number in range(32)]
    with FakeOpenAI([*replies, TXT("done")], by_history=True, strict=True) as server:
        flock = _Flock(Command(tmp_path, server.base_url), threads, seed=7)
        flock.run(kills=40)

    assert [said for said in flock.said if "locked" in said or "Traceback" in said] == []
    assert (flock.kills >= 20, server.faults) == (True, [])
    outcomes = _outcomes(tmp_path / "home" / "data" / "graph-agent.db")
    assert outcomes == [(thread, "success", _STEPS) for thread in threads]
