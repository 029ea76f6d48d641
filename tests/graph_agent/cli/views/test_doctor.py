from pathlib import Path

import pytest
import typer

from graph_agent.cli.views.doctor import print_checks


def test_each_line_says_whether_it_works_and_nothing_of_it_moves_the_cursor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path))
    monkeypatch.setenv("GRAPH_AGENT_MODE", "\x1b[2J")

    with pytest.raises(typer.Exit) as left:
        print_checks(tmp_path / "a.db", as_json=False)

    shown = capsys.readouterr().out
    assert (left.value.exit_code, "\x1b" in shown) == (1, False)
    assert {line[:4] for line in shown.splitlines() if not line.startswith("     ")} <= {"ok  ", "FAIL", "note"}
