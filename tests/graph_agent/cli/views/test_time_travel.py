import io

import pytest
import typer

from graph_agent.app.rewind import RewindOutcome
from graph_agent.app.threads import Forked
from graph_agent.cli.views.time_travel import confirm_rewind, print_fork, print_rewind
from graph_agent.errors import UsageError
from graph_agent.ports import ExecutedAttempt, FileImage, FileRestoration, Rewind
from graph_agent.session.time_travel import Conflict, RewindPlan

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
def test_what_it_takes_is_shown_before_it_is_asked(
    typed: str, answer: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))

    assert confirm_rewind(_SURVEY) is answer
    assert capsys.readouterr().out == f"{_SHOWN}Continue? [y/N] "


def test_where_nobody_answers_it_is_a_wrong_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))

    with pytest.raises(UsageError, match="--yes"):
        confirm_rewind(_SURVEY)


def test_done_it_says_where_the_thread_stands_and_how_to_take_it_back(capsys: pytest.CaptureFixture[str]) -> None:
    print_rewind(RewindOutcome(_SURVEY, is_done=True, head="c10"), is_dry=False, as_json=False, was_shown=False)

    assert capsys.readouterr().out == (
        f"{_SHOWN}Done. The thread is at checkpoint c10.\nUndo with: graph-agent rewind --undo t\n"
    )


def test_stopped_by_a_conflict_it_names_the_file_and_the_ways_out_and_fails(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen = RewindPlan(_SURVEY.rewind, (Conflict("/w/a", "it was changed by somebody else since"),))

    with pytest.raises(typer.Exit) as left:
        print_rewind(RewindOutcome(seen, is_done=False, head="c9"), is_dry=False, as_json=False, was_shown=False)

    assert left.value.exit_code == 1
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "Conflict: /w/a: it was changed by somebody else since",
        "Nothing was changed. --force restores these files too; --chat-only keeps all files.",
    ]


def test_what_was_left_and_what_was_finished_first_are_told_and_fail(capsys: pytest.CaptureFixture[str]) -> None:
    done = RewindOutcome(_SURVEY, is_done=True, head="c10", left=("'/w/a' is read-only",), finished=_SURVEY.rewind)

    with pytest.raises(typer.Exit):
        print_rewind(done, is_dry=False, as_json=False, was_shown=True)

    assert capsys.readouterr().out.splitlines()[:2] == [
        "First finished an interrupted rewind to c1.",
        "Not changed: '/w/a' is read-only",
    ]


def test_a_fork_says_where_it_comes_from_what_is_asked_again_and_how_to_go_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_fork(Forked("f", "t\x1b[2J", "c1", turns=1, open_calls=2), as_json=False)

    assert capsys.readouterr().out == (
        "Forked thread t\\x1b[2J at checkpoint c1: 1 turn\n"
        "2 open calls: approval is requested again\n"
        "Resume with: graph-agent resume f\n"
    )
