from pathlib import Path

from graph_agent.cli.headless.report import PendingWork, read_pending_work, shared_call_ids
from graph_agent.ports.usage import usage_report
from tests.fakes.database_rows import Rows, record_of
from tests.fakes.light_commands import asking, json_of


def test_what_a_thread_waits_for_has_the_shape_of_the_lists(rows: Rows) -> None:
    asking(rows)
    rows.call(record_of("executing", "call_b"))
    asking(rows, "t2")

    left = read_pending_work(rows.path, "t1")

    approvals = json_of(rows, "approvals", "list", "--thread", "t1")["approvals"]
    interrupted = json_of(rows, "calls", "t1", "--status", "interrupted")["calls"]
    assert left == PendingWork("c1", approvals, interrupted, usage_report(None))
    assert ([call["call_id"] for call in approvals], len(interrupted)) == (["t1:call_a"], 1)
    assert shared_call_ids(rows.path) == {"call_a"}


def test_what_cannot_be_read_is_told_as_nothing(tmp_path: Path, rows: Rows) -> None:
    assert (
        read_pending_work(rows.path, "none")
        == read_pending_work(tmp_path / "none.db", "t1")
        == read_pending_work(None, "t1")
        == PendingWork()
    )
    assert shared_call_ids(None) == shared_call_ids(tmp_path / "none.db") == frozenset()
