from pathlib import Path

import pytest

from graph_agent.cli.views.checkpoints import show_difference
from tests.fakes.played_thread import play
from tests.fakes.scripted_model import text


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
