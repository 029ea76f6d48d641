"""Ten thousand steps under the real command: it answers in a time a person accepts, and in little memory."""

import asyncio
import sqlite3
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path

import pytest

from tests.fakes.openai_server import TXT, FakeOpenAI
from tests.peak import peak_mb
from tests.scenarios.command import Command
from tests.scenarios.growing import PER_TURN, Growth, grow
from tests.scenarios.stage import THREAD

pytestmark = [pytest.mark.sweep, pytest.mark.timeout(3600)]

_STEPS, _KEEP_TURNS = 10_002, 50
_MOST_SECONDS = 30.0
_MOST_MB = {"threads export": 400.0, "threads delete": 200.0, "doctor": 300.0}
"""A page holds all that was said; what is deleted is written twice, to be undone if that is broken off."""
_MOST_MB_OF_OTHERS = 160.0


def _commands(folder: Path, checkpoint: str) -> Iterator[tuple[str, ...]]:
    """In this order: the last ones change the thread."""
    yield ("inspect", THREAD)
    yield ("history", THREAD)
    yield ("calls", THREAD)
    yield ("calls", THREAD, "--json")
    yield ("threads", "show", THREAD)
    yield ("threads", "show", THREAD, "--full")
    yield ("threads", "show", THREAD, "--json")
    yield ("threads", "search", "done")
    yield ("threads", "export", THREAD, "--output", str(folder / "thread.json"))
    yield ("threads", "export", THREAD, "--output", str(folder / "thread.md"))
    yield ("threads", "export", THREAD, "--output", str(folder / "thread.html"))
    yield ("doctor",)
    yield ("run", "hello", "--resume", THREAD, "--workspace", str(folder))
    yield ("compact", THREAD)
    yield ("rewind", checkpoint, "--dry-run")
    yield ("rewind", checkpoint, "--yes")
    yield ("fork", checkpoint)
    yield ("threads", "prune", THREAD, "--keep", "10")
    yield ("threads", "delete", THREAD, "--yes")


def test_each_command_answers_soon_and_in_little_memory(tmp_path: Path) -> None:
    database = tmp_path / "agent.db"
    # In another process: what this one needed at most would count for each command that it starts.
    with ProcessPoolExecutor(1, get_context("spawn")) as builder:
        growth = builder.submit(_grown, database).result()
    early, late = (sum(growth.cpu_s[start:][:50]) for start in (50, -50))
    beyond: list[str] = []

    with FakeOpenAI([], after=TXT("hello")) as server:
        command = Command(tmp_path, server.base_url)
        for arguments in _commands(tmp_path, _middle(database)):
            seconds, most_mb = _measured(command, *arguments, "--db", str(database))
            name = " ".join(part for part in arguments[:2] if part.isalpha())
            sys.stdout.write(f"{' '.join(arguments):.70}: {seconds:.2f} s, {most_mb:.0f} MB\n")
            if seconds > _MOST_SECONDS or most_mb > _MOST_MB.get(name, _MOST_MB_OF_OTHERS):
                beyond.append(f"{arguments}: {seconds:.2f} s, {most_mb:.0f} MB")

    assert (len(growth.rows), beyond) == (_STEPS // PER_TURN, [])
    assert late <= 2 * early


def _grown(database: Path) -> Growth:
    return asyncio.run(grow(database, _STEPS, _KEEP_TURNS))


def _middle(database: Path) -> str:
    with closing(sqlite3.connect(database)) as connection, connection:
        found = connection.execute("SELECT checkpoint_id FROM checkpoints ORDER BY checkpoint_id").fetchall()
    connection.close()
    return str(found[len(found) // 2][0])


def _measured(command: Command, *arguments: str) -> tuple[float, float]:
    """Seconds, and megabytes that the process needed at most."""
    began = time.monotonic()
    code, most = peak_mb(command.argv(*arguments), env=command.env, folder=command.workspace)
    assert code in (0, 1), arguments
    return time.monotonic() - began, most
