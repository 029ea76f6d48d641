from pathlib import Path

import pytest

from graph_agent.cli.views.statistics import show_statistics
from tests.fakes.database_rows import Rows, record_of


def test_statistics_are_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = Rows(tmp_path / "graph-agent.db")
    rows.thread()
    rows.call(record_of("success"))
    rows.journal("success", {}, ended_at="2026-11-28T10:00:01.500Z")
    rows.journal("interrupted", attempt=2)

    show_statistics(rows.path, as_json=False)
    rows.close()

    assert capsys.readouterr().out.splitlines() == [
        "TOOL  RAN  GOOD  FAILED  UNFINISHED  TOTAL   AVERAGE  P95",
        "bash  2    1     0       1           1.50 s  1.50 s   1.50 s",
    ]


def test_before_anything_ran_the_list_is_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show_statistics(tmp_path / "none.db", as_json=True)
    show_statistics(tmp_path / "none.db", as_json=False)

    assert capsys.readouterr().out == '{\n  "tools": []\n}\nNo tool has run yet.\n'
