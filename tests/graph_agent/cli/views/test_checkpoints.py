from pathlib import Path

import pytest

from graph_agent.cli.views.checkpoints import show_history
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
