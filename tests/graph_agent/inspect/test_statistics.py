from collections.abc import Iterator
from pathlib import Path

import pytest

from graph_agent.app.reader import read_database
from graph_agent.inspect import ToolStatistics
from tests.fakes.database_rows import START, Rows, record_of


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Rows]:
    rows = Rows(tmp_path / "graph-agent.db")
    for thread_id in ("t1", "t2"):
        rows.thread(thread_id)
        rows.call(record_of("success"), thread_id)
    rows.call(record_of("success", "call_b", tool_name="ls"))
    yield rows
    rows.close()


def read(rows: Rows) -> list[ToolStatistics]:
    with read_database(rows.path) as reader:
        return reader.statistics()


def test_attempts_of_all_threads_are_counted_by_tool(rows: Rows) -> None:
    rows.journal("interrupted", started_at=START, ended_at="2026-11-28T10:00:09.000Z")
    rows.journal("success", {}, attempt=2, started_at=START, ended_at="2026-11-28T10:00:01.500Z")
    rows.journal("error", {}, thread_id="t2", started_at=START, ended_at="2026-11-28T10:00:00.500Z")
    rows.journal("not_started", call_id="call_b")
    rows.journal("executing", call_id="call_b", attempt=2)

    assert read(rows) == [
        ToolStatistics("bash", 3, 1, 1, 1, 2.0, 1.0, 1.5),
        ToolStatistics("ls", 1, 0, 0, 1, 0, None, None),
    ]


def test_p95_leaves_out_the_slowest_of_twenty(rows: Rows) -> None:
    for number in range(1, 21):
        rows.journal("success", {}, attempt=number, ended_at=f"2026-11-28T10:00:{number:02}.000Z")

    [statistics] = read(rows)

    assert (statistics.executions, statistics.p95_s, statistics.total_s) == (20, 19.0, 210.0)


def test_a_clock_that_was_put_back_makes_no_negative_time(rows: Rows) -> None:
    rows.journal("success", {}, ended_at="2026-11-28T09:00:00.000Z")

    assert [item.total_s for item in read(rows)] == [0.0]
