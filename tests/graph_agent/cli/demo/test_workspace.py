import os
import subprocess
import sys
from pathlib import Path

import pytest

from graph_agent.cli.demo.workspace import demo_workspace
from graph_agent.errors import UsageError
from tests.architecture.checkout import ROOT


def test_a_place_is_gone_afterwards_also_after_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    with demo_workspace(is_kept=False) as place:
        laid_down = sorted(file.name for file in place.workspace.iterdir())
    with pytest.raises(ZeroDivisionError), demo_workspace(is_kept=False):
        raise ZeroDivisionError

    assert laid_down == ["charge.sh", "order.txt"]
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_is_kept_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    with demo_workspace(is_kept=True) as place:
        pass

    assert list(tmp_path.iterdir()) == [place.folder]


def test_what_a_killed_demo_left_goes_with_the_next_one_and_no_other_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    demo = (
        "from graph_agent.cli.demo.workspace import demo_workspace; "
        "made = demo_workspace(is_kept=False); made.__enter__()"
    )
    kill = f"{demo}; import os; os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", kill], env={**os.environ, "TMPDIR": str(tmp_path)}, cwd=ROOT, check=False)
    [left] = tmp_path.iterdir()
    (tmp_path / "graph-agent-demo-link").symlink_to(left)

    with (
        demo_workspace(is_kept=True) as kept,
        demo_workspace(is_kept=False) as first,
        demo_workspace(is_kept=False) as second,
    ):
        there = sorted(tmp_path.iterdir())

    assert there == sorted([tmp_path / "graph-agent-demo-link", kept.folder, first.folder, second.folder])


def test_its_commands_see_none_of_the_users_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GRAPH_AGENT_DB", "GRAPH_AGENT_MODE", "KEPT"):
        monkeypatch.setenv(name, "x")

    with demo_workspace(is_kept=False) as place:
        ours = {name: value for name, value in place.environment.items() if value in ("x", str(place.home))}

    assert ours == {"KEPT": "x", "GRAPH_AGENT_HOME": str(place.home)}


def test_the_command_is_charged_once_it_has_charged_and_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    with demo_workspace(is_kept=False) as place:
        told = [place.is_charged()]
        (place.workspace / "charges.txt").touch()
        told.append(place.is_charged())
        place.home.mkdir()
        (place.home / "call-1.out").write_text("card charged, waiting for the bank\n")
        told.append(place.is_charged())

    assert told == [False, False, True]


def test_without_a_temporary_folder_it_says_what_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))

    with (
        pytest.raises(UsageError, match=r"temporary folder .* TMPDIR"),
        demo_workspace(is_kept=False),
    ):
        pass
