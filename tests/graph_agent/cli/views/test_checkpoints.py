from pathlib import Path

import pytest

from graph_agent.cli.views.inspection import show_difference, show_history
from tests.fakes.played_thread import play
from tests.fakes.scripted_model import text


def test_the_newest_comes_first_and_the_head_is_marked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    path = tmp_path / "a.db"
    (head,) = play(path, "one", replies=(text("a"),))

    show_history(path, "", None, as_json=False)

    headings, newest, *_ = capsys.readouterr().out.splitlines()
    assert headings.split() == ["CHECKPOINT", "WHEN", "STEP", "NODE", "CALLS", "CHANGED"]
    assert newest.startswith(f"{head[-8:]} *  ")
    assert "reasoning" in newest

    show_history(path, "", None, last=1, as_json=False)

    *rows, told = capsys.readouterr().out.splitlines()
    assert (len(rows), rows[1].split()[0], told.startswith("… ")) == (2, head[-8:], True)


def test_what_was_and_what_is_stand_under_each_other_and_move_no_cursor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    path = tmp_path / "a.db"
    first, second = play(path, "one", "two \x1b[2J", replies=(text("a"), text("b")))

    show_difference(path, first, second, None, as_json=False)

    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith(("- usage.requests", "+ usage.requests"))] == [
        "- usage.requests: 1",
        "+ usage.requests: 2",
    ]
    assert not any("\x1b" in line for line in lines)
