from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.bench.load import clone_task
from tests.fakes.openai_server import TC, TXT
from tests.fakes.postgres_server import PostgresServer, running_server
from tests.scenarios.command import NO_SANDBOX, Scripted, scripted

pytestmark = pytest.mark.slow

_COUNTS = """
SELECT (SELECT sum(calls) FROM public.pg_stat_statements WHERE query !~* 'pg_stat'), sum(n_tup_ins), sum(n_tup_upd)
FROM pg_stat_user_tables WHERE schemaname = 'graph_agent'
"""
_MOST = (85, 19, 8)
"""Statements, inserted and updated rows that a step may take; docs/scale-out.md says how many it takes."""


@pytest.fixture(scope="module")
def counting(postgres_programs: Path) -> Iterator[PostgresServer]:
    with running_server(postgres_programs, settings={"shared_preload_libraries": "pg_stat_statements"}) as server:
        yield server


def _counts(connection: "psycopg.Connection[tuple[int | None, ...]]") -> list[int]:
    [row] = connection.execute(_COUNTS).fetchall()
    return [int(one or 0) for one in row]


def _cost(server: PostgresServer, folder: Path, calls: int, turns: int = 1) -> list[int]:
    """Statements, inserted rows and updated rows of the last of so many turns with so many calls each."""
    folder.mkdir()
    url = server.create_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION pg_stat_statements")
    replies = [
        TXT("done") if number == calls else TC(f"c{turn}-{number}", "bash", {"command": "touch x"})
        for turn in range(turns)
        for number in range(calls + 1)
    ]
    before = [0, 0, 0]
    with scripted(folder, replies, settings=NO_SANDBOX) as agent:
        for turn in range(turns):
            with psycopg.connect(url, autocommit=True) as connection:
                before = [0, *_counts(connection)[1:]] if turn else before
                connection.execute("SELECT public.pg_stat_statements_reset()")
            done = agent("run", "go", "--thread", "t", "--mode", "bypassPermissions", "--db", url)
            assert done.returncode == 0
    with psycopg.connect(url, autocommit=True) as connection:
        return [now - then for now, then in zip(_counts(connection), before, strict=True)]


def test_a_step_costs_as_many_statements_and_rows_however_long_its_thread_is(
    counting: PostgresServer, tmp_path: Path
) -> None:
    few, many = _cost(counting, tmp_path / "few", 4), _cost(counting, tmp_path / "many", 24)
    late = _cost(counting, tmp_path / "late", 4, turns=4)

    each = [(one - other) / 20 for one, other in zip(many, few, strict=True)]
    assert [cost for cost, most in zip(each, _MOST, strict=True) if cost > most] == []
    assert [cost for cost, first in zip(late, few, strict=True) if cost > first] == []


_LOOKED = "SELECT sum(calls), sum(rows) FROM public.pg_stat_statements WHERE query !~* 'pg_stat'"


def _look(agent: Scripted, url: str) -> list[int]:
    """Statements and rows of a worker that starts, finds nothing that can run, and ends."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT public.pg_stat_statements_reset()")
        assert agent("worker", "--once", "--db", url).returncode == 0
        [row] = connection.execute(_LOOKED).fetchall()
    return [int(one) for one in row]


def test_a_worker_reads_as_few_rows_however_many_tasks_wait_or_have_ended(
    counting: PostgresServer, tmp_path: Path
) -> None:
    url = counting.create_database()
    with scripted(tmp_path, [TC("c1", "bash", {"command": "touch x"}), TXT("done")], settings=NO_SANDBOX) as agent:
        task = agent.json("tasks", "add", "go", "--db", url)
        agent("worker", "--once", "--db", url)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION pg_stat_statements")
            few = _look(agent, url)
            clone_task(connection, task["thread_id"], 300, {})
            ended = {"tasks.state": "'done'", "threads.next_nodes": "'[]'"}
            clone_task(connection, task["thread_id"], 300, ended, "d")
        many = _look(agent, url)
        answered = agent("approvals", "approve", f"{task['thread_id']}:c1", "--db", url)
        agent("worker", "--once", "--db", url)
        statuses = Counter(task["status"] for task in agent.json("tasks", "list", "--db", url)["tasks"])

    assert (few, answered.returncode) == (many, 0)
    assert statuses == {"waiting": 300, "done": 301}
