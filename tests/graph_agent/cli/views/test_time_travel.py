import io
import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from graph_agent.app.rewind import RewindOutcome
from graph_agent.app.threads import Forked
from graph_agent.cli.main import app
from graph_agent.cli.views.time_travel import confirm_rewind, print_fork, print_rewind
from graph_agent.errors import UsageError
from graph_agent.ports import ExecutedAttempt, FileImage, FileRestoration, Rewind
from graph_agent.session.time_travel import Conflict, RewindPlan
from tests.fakes.played_thread import play

_FILES = (
    FileRestoration("/w/a", FileImage("new"), FileImage("old")),
    FileRestoration("/w/b", FileImage("new"), FileImage()),
    FileRestoration("/w/c", FileImage(), FileImage("old")),
)
_LASTING = (
    ExecutedAttempt("c", 1, "success", None, "", "bash", "execute", {"command": "make\x1b[2J"}),
    ExecutedAttempt(
        "d", 1, "success", None, "", "bash", "execute", {"command": "touch x"}, changed_files=("x\x1b",)
    ),
)
_SURVEY = RewindPlan(Rewind("t", "c1", "c9", "both", _FILES, (("w", 1), ("c", 1))), irreversible=_LASTING)
_SHOWN = (
    "Rewind to checkpoint c1 of thread t: conversation and files\n"
    "  restore  /w/a\n"
    "  remove   /w/b\n"
    "  create   /w/c\n"
    "  2 later calls marked as reverted\n"
    "Cannot be undone; the effects of these calls stay:\n"
    "  $ make\\x1b[2J\n"
    "  $ touch x\n"
    "    changed: x\\x1b\n"
)


@pytest.mark.parametrize(("typed", "answer"), [("y\n", True), ("YES\n", True), ("\n", False), ("no\n", False)])
def test_a_rewind_is_previewed_before_the_question(
    typed: str, answer: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))

    assert confirm_rewind(_SURVEY) is answer
    assert capsys.readouterr().out == f"{_SHOWN}Continue? [y/N] "


def test_a_rewind_without_an_answer_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))

    with pytest.raises(UsageError, match="--yes"):
        confirm_rewind(_SURVEY)


def test_a_rewind_prints_the_new_checkpoint_and_how_to_undo(capsys: pytest.CaptureFixture[str]) -> None:
    print_rewind(RewindOutcome(_SURVEY, is_done=True, head="c10"), is_dry=False, as_json=False, was_shown=False)

    assert capsys.readouterr().out == (
        f"{_SHOWN}Done. The thread is at checkpoint c10.\nUndo with: graph-agent rewind --undo t\n"
    )


def test_a_conflict_stops_a_rewind_with_the_file_and_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    seen = RewindPlan(_SURVEY.rewind, (Conflict("/w/a", "it was changed by somebody else since"),))

    with pytest.raises(typer.Exit) as left:
        print_rewind(RewindOutcome(seen, is_done=False, head="c9"), is_dry=False, as_json=False, was_shown=False)

    assert left.value.exit_code == 1
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "Conflict: /w/a: it was changed by somebody else since",
        "Nothing was changed. --force restores these files too; --chat-only keeps all files.",
    ]


def test_files_that_were_not_restored_are_named_and_exit_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    done = RewindOutcome(_SURVEY, is_done=True, head="c10", left=("'/w/a' is read-only",), finished=_SURVEY.rewind)

    with pytest.raises(typer.Exit):
        print_rewind(done, is_dry=False, as_json=False, was_shown=True)

    assert capsys.readouterr().out.splitlines()[:2] == [
        "First finished an interrupted rewind to c1.",
        "Not changed: '/w/a' is read-only",
    ]


def test_a_fork_prints_its_origin_its_open_calls_and_how_to_resume(capsys: pytest.CaptureFixture[str]) -> None:
    print_fork(Forked("f", "t\x1b[2J", "c1", turns=1, open_calls=2), as_json=False)

    assert capsys.readouterr().out == (
        "Forked thread t\\x1b[2J at checkpoint c1: 1 turn\n"
        "2 open calls: approval is requested again\n"
        "Resume with: graph-agent resume f\n"
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "Name a CHECKPOINT"),
        (("c1", "--files-only", "--chat-only"), "cannot be combined"),
        (("c1", "--json"), "--yes or --dry-run"),
    ],
)
def test_rewind_refuses_options_that_exclude_each_other(arguments: tuple[str, ...], told: str) -> None:
    done = CliRunner().invoke(app, ["rewind", *arguments])

    assert done.exit_code == 2
    assert told in done.stderr


def test_rewind_restores_the_conversation_and_prints_json(tmp_path: Path) -> None:
    database = tmp_path / "agent.db"
    first, second = play(database, "one", "two")

    done = CliRunner().invoke(app, ["rewind", first, "--yes", "--json", "--db", str(database)])

    told = json.loads(done.stdout)
    assert (done.exit_code, told["checkpoint_id"], told["done"], told["files"]) == (0, first, True, [])
    assert told["head"] > second


def test_fork_accepts_a_shortened_id_and_prints_the_thread_as_json(tmp_path: Path) -> None:
    database = tmp_path / "agent.db"
    first, _ = play(database, "one", "two")

    done = CliRunner().invoke(app, ["fork", first[-12:], "--as", "mine", "--db", str(database), "--json"])

    assert (done.exit_code, json.loads(done.stdout)) == (
        0,
        {"thread_id": "mine", "parent_thread": "thread-1", "checkpoint_id": first, "turns": 1, "open_calls": 0},
    )


def test_an_older_checkpoint_is_not_compacted(tmp_path: Path) -> None:
    database = tmp_path / "agent.db"
    first, _ = play(database, "one", "two")

    done = CliRunner().invoke(app, ["compact", first, "--db", str(database)])

    assert (done.exit_code, first in str(done.exception)) == (1, True)
