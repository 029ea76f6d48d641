from pathlib import Path

import pytest

from graph_agent.cli.session_target import Target, resolve_target
from graph_agent.errors import NothingYet, UsageError


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_only_given_flags_are_handed_on(tmp_path: Path) -> None:
    flags = {"model": None, "mode": "plan", "no_stream": False, "max_steps": 3}

    assert resolve_target(flags, workspace=None, thread=None, resume=None) == Target(
        tmp_path, flags={"mode": "plan", "max_steps": 3}
    )


def test_a_thread_that_is_not_there_yet_is_created_here(tmp_path: Path) -> None:
    assert resolve_target({}, workspace=None, thread="fix-42", resume=None) == Target(
        tmp_path, "fix-42", exists=False
    )


@pytest.mark.parametrize("name", ["", "  ", " a", "two\nlines", "\x1b[2J", "x" * 101])
def test_what_is_no_name_makes_no_thread(name: str) -> None:
    with pytest.raises(UsageError, match="is no name for a new thread"):
        resolve_target({}, workspace=None, thread=name, resume=None)


def test_a_named_folder_is_the_workspace(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()

    assert resolve_target({}, workspace=str(other), thread=None, resume=None).workspace == other


def test_what_cannot_be_aimed_at_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="twice"):
        resolve_target({}, workspace=None, thread="a", resume="b")
    with pytest.raises(UsageError, match="is not a folder"):
        resolve_target({}, workspace=str(tmp_path / "none"), thread=None, resume=None)
    with pytest.raises(NothingYet):
        resolve_target({}, workspace=None, thread=None, resume="abcd")
