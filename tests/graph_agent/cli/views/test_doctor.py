import json
from pathlib import Path

import pytest
import typer

from graph_agent.app.repair import repair
from graph_agent.cli.views.doctor import print_checks, repair_installation


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


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path))
    return tmp_path / "data" / "graph-agent.db"


def test_what_is_done_is_said_before_and_after_and_then_everything_is_examined(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path.parent.mkdir()
    path.parent.chmod(0o755)

    repair_installation(path, repair, as_json=False)
    repair_installation(path, repair, as_json=False)

    lines = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert lines[:2] == [["will", "privacy"], ["done", "privacy"]]
    assert lines.count(["Nothing", "to"]) == 1
    assert lines.count(["ok", "database"]) == 2


def test_in_json_the_repairs_stand_beside_the_checks_and_what_is_still_amiss_gives_exit_1(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path.parent.mkdir(mode=0o700)
    path.write_bytes(b"no database " * 1000)
    path.chmod(0o600)

    with pytest.raises(typer.Exit) as left:
        repair_installation(path, repair, as_json=True)

    told = json.loads(capsys.readouterr().out)
    assert (left.value.exit_code, [one["stage"] for one in told["repairs"]]) == (1, ["left"])
    assert [check["ok"] for check in told["checks"] if check["name"] == "database"] == [False]
