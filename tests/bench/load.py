"""Load on one PostgreSQL server: threads that wait, and threads that run on several workers.

python -m tests.bench.load [--running N] [--workers N] [--waiting N] [--model-seconds S] [--calls N]

prints a row for one thread alone, and one for each number of running threads: steps per second, their share of what
so many threads would do at the pace of one alone, own time of a step (without the model), connections, and
statements and rows per step. A step is a model request with one call of a command.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg

from graph_agent.config.paths import database_path
from graph_agent.worker.tasks import TaskRequest, add_task
from tests.fakes.openai_server import separate_server
from tests.fakes.postgres_server import PostgresServer, find_programs, running_server
from tests.isolation import clean_environment
from tests.scenarios.command import NO_SANDBOX, Command

__all__ = ["clone_task", "main"]

_STEPS = """
SELECT thread_id, CAST(extract(epoch FROM CAST(at AS timestamptz)) AS double precision) FROM graph_agent.transcript
WHERE role = 'assistant' AND thread_id = ANY(%s) ORDER BY thread_id, seq
"""
_COUNTS = """
SELECT (SELECT sum(calls) FROM public.pg_stat_statements WHERE query !~* 'pg_stat'), sum(n_tup_ins) + sum(n_tup_upd)
FROM pg_stat_user_tables WHERE schemaname = 'graph_agent'
"""
_CONNECTIONS = (
    "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
)
_CLONED = ("threads", "tasks", "call_log")
_TIMEOUT_S = 900.0


def clone_task(
    connection: "psycopg.Connection[Any]", thread_id: str, copies: int, values: Mapping[str, str], mark: str = "w"
) -> None:
    """Add copies of a task, with its thread and its calls.

    Args:
        values: other expressions for columns, by TABLE.COLUMN.
        mark: a part of the ids of the copies.
    """
    for table in _CLONED:
        columns = connection.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'graph_agent' "
            "AND table_name = %s AND is_generated = 'NEVER' AND is_identity = 'NO'",
            (table,),
        ).fetchall()
        names = [str(name) for (name,) in columns]
        ids = {name: f"{name} || '-{mark}' || n" for name in ("thread_id", "task_id")}
        chosen = [values.get(f"{table}.{name}", ids.get(name, name)) for name in names]
        connection.execute(
            f"INSERT INTO graph_agent.{table} ({', '.join(names)}) SELECT {', '.join(chosen)} "  # noqa: S608 - names
            f"FROM graph_agent.{table}, generate_series(1, {copies}) n WHERE thread_id = '{thread_id}'".encode()
        )


@dataclass(frozen=True)
class _Found:
    """What was measured with one number of running threads."""

    threads: int
    steps: int
    seconds: float
    own_ms: Sequence[float]
    connections: int
    statements: float
    rows: float


class _Load:
    def __init__(self, options: argparse.Namespace, folder: Path, server: PostgresServer, model: str) -> None:
        self._options = options
        self._folder = folder
        self._server = server
        self._model = model
        self._number = 0

    def measure(self, workers: int, slots: int, waiting: int) -> _Found:
        """Run as many threads as fit, on a database of their own."""
        self._number += 1
        folder = self._folder / str(self._number)
        url = self._server.create_database()
        extra = {"GRAPH_AGENT_DB": url}
        command = Command(folder, self._model, extra_env=extra, settings=NO_SANDBOX)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION pg_stat_statements")
            self._leave_waiting(command, connection, waiting)
            threads = asyncio.run(self._add(command, workers * slots))
            before = self._counts(connection)
            connection.execute("SELECT public.pg_stat_statements_reset()")
            most = self._work(command, connection, workers, slots)
            statements, rows = self._counts(connection)
            found = connection.execute(_STEPS, (threads,)).fetchall()
        self._server.drop_database(url)
        ends: dict[str, list[float]] = {}
        for thread_id, at in found:
            ends.setdefault(thread_id, []).append(at)
        pairs = [(two - one) for times in ends.values() for one, two in pairwise(times)]
        own = sorted(1000 * (seconds - self._options.model_seconds) for seconds in pairs)
        all_ends = sorted(at for times in ends.values() for at in times)
        steps = len(threads) * (self._options.calls + 1)
        assert len(all_ends) == steps, f"{len(all_ends)} of {steps} steps"
        seconds = all_ends[-1] - all_ends[0]
        return _Found(len(threads), len(pairs), seconds, own, most, statements / steps, (rows - before[1]) / steps)

    def _leave_waiting(self, command: Command, connection: "psycopg.Connection[Any]", waiting: int) -> None:
        task = command.json("tasks", "add", "go", "--mode", "default")
        assert command("worker", "--once").returncode == 0
        if waiting:
            clone_task(connection, task["thread_id"], waiting, {})

    async def _add(self, command: Command, count: int) -> list[str]:
        flags = {"mode": "bypassPermissions"}
        request = TaskRequest("go", command.workspace, flags)
        with _environment(command.env):
            database = database_path(os.environ)
            return [(await add_task(database, request)).thread_id for _ in range(count)]

    def _counts(self, connection: "psycopg.Connection[Any]") -> list[float]:
        connection.execute("SELECT pg_stat_force_next_flush(), pg_stat_clear_snapshot()")
        connection.execute("SELECT 1")
        [row] = connection.execute(_COUNTS).fetchall()
        return [float(one or 0) for one in row]

    def _work(self, command: Command, connection: "psycopg.Connection[Any]", workers: int, slots: int) -> int:
        """Let the workers come to their end; returns the most connections that were seen."""
        programs = [command.start("worker", "--once", "-j", str(slots)) for _ in range(workers)]
        most, until = 0, time.monotonic() + _TIMEOUT_S
        while any(program.poll() is None for program in programs) and time.monotonic() < until:
            [(now,)] = connection.execute(_CONNECTIONS).fetchall()
            most = max(most, int(now))
            time.sleep(1)
        return most


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _model(folder: Path, options: argparse.Namespace) -> Iterator[str]:
    """A scripted model in a process of its own; yields its address."""
    asked = {"calls": [["c1", "bash", {"command": "touch x"}]], "delay_s": options.model_seconds}
    script = [{**asked, "calls": [[f"c{n}", *asked["calls"][0][1:]]]} for n in range(options.calls)]
    end = {"text": "done", "delay_s": options.model_seconds}
    with separate_server(folder / "script.json", [*script, end]) as address:
        yield address


def main(arguments: list[str]) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--running", type=int, default=200)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--waiting", type=int, default=1000)
    parser.add_argument("--model-seconds", type=float, default=0.5)
    parser.add_argument("--calls", type=int, default=4)
    options = parser.parse_args(arguments)
    programs = find_programs()
    if programs is None:
        parser.error("no PostgreSQL server was found (apt install postgresql)")
    settings = {"max_connections": str(4 * options.running + 100), "shared_preload_libraries": "pg_stat_statements"}
    root = Path(tempfile.mkdtemp(prefix="load-"))
    with (
        clean_environment(root),
        running_server(programs, settings=settings) as server,
        _model(root, options) as model,
    ):
        load = _Load(options, root, server, model)
        alone = load.measure(1, 1, 0)
        sys.stdout.write(_row("1 thread alone", alone, alone))
        slots = 1
        while slots * options.workers < options.running:
            _print(load.measure(options.workers, slots, options.waiting), alone, options)
            slots *= 4
        _print(load.measure(options.workers, options.running // options.workers, options.waiting), alone, options)
    return 0


def _print(found: _Found, alone: _Found, options: argparse.Namespace) -> None:
    sys.stdout.write(_row(f"{found.threads} on {options.workers} workers, {options.waiting} waiting", found, alone))
    sys.stdout.flush()


def _row(name: str, found: _Found, alone: _Found) -> str:
    pace, one = found.steps / found.seconds, alone.steps / alone.seconds
    median, p95 = statistics.median(found.own_ms), statistics.quantiles(found.own_ms, n=20, method="inclusive")[-1]
    share = pace / (one * found.threads)
    return (
        f"| {name} | {pace:.1f} steps/s | {share:.2f} | {median:.0f} / {p95:.0f} ms | {found.connections} | "
        f"{found.statements:.0f} | {found.rows:.0f} |\n"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
