import io
from pathlib import Path

import pytest
import typer

from graph_agent.app.rewind import RewindOutcome
from graph_agent.app.threads import Forked
from graph_agent.cli.views.time_travel import confirm_rewind, print_fork, print_rewind
from graph_agent.errors import UsageError
from graph_agent.ports import ExecutedAttempt, FileImage, FileRestoration, Rewind
from graph_agent.session.time_travel import Conflict, RewindPlan
from tests.fakes.played_thread import play
from tests.graph_agent.cli.commands import json_of, type_command

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
_UNDO = "Undo with: graph-agent rewind --undo t"
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
    with pytest.raises(UsageError, match="--yes"):
        confirm_rewind(_SURVEY)  # stdin has ended


_CONFLICT = RewindPlan(_SURVEY.rewind, (Conflict("/w/a", "it was changed by somebody else since"),))


@pytest.mark.parametrize(
    ("outcome", "was_shown", "code", "lines"),
    [
        (
            RewindOutcome(_SURVEY, is_done=True, head="c10"),
            False,
            0,
            [*_SHOWN.splitlines(), "Done. The thread is at checkpoint c10.", _UNDO],
        ),
        (
            RewindOutcome(_CONFLICT, is_done=False, head="c9"),
            False,
            1,
            [
                "Conflict: /w/a: it was changed by somebody else since",
                "Nothing was changed. --force restores these files too; --chat-only keeps all files.",
            ],
        ),
        (
            RewindOutcome(
                _SURVEY, is_done=True, head="c10", left=("'/w/a' is read-only",), finished=_SURVEY.rewind
            ),
            True,
            1,
            [
                "First finished an interrupted rewind to c1.",
                "Not changed: '/w/a' is read-only",
                "Done. The thread is at checkpoint c10.",
                _UNDO,
            ],
        ),
    ],
    ids=["done", "stopped by a conflict", "files were not restored"],
)
def test_a_rewind_prints_its_outcome_and_fails_if_it_is_incomplete(
    outcome: RewindOutcome, was_shown: bool, code: int, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        print_rewind(outcome, is_dry=False, as_json=False, was_shown=was_shown)
        exit_code = 0
    except typer.Exit as leaving:
        exit_code = leaving.exit_code

    assert (exit_code, capsys.readouterr().out.splitlines()[-len(lines) :]) == (code, lines)


def test_a_fork_prints_its_origin_its_open_calls_and_how_to_resume(capsys: pytest.CaptureFixture[str]) -> None:
    print_fork(Forked("f", "t\x1b[2J", "c1", turns=1, open_calls=2), as_json=False)

    assert capsys.readouterr().out == (
        "Forked thread t\\x1b[2J at checkpoint c1: 1 turn\n"
        "2 open calls: approval is requested again\n"
        "Resume with: graph-agent resume f\n"
    )


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ((), "Name a CHECKPOINT"),
        (("c1", "--files-only", "--chat-only"), "cannot be combined"),
        (("c1", "--json"), "--yes or --dry-run"),
    ],
)
def test_rewind_refuses_options_that_exclude_each_other(arguments: tuple[str, ...], shown: str) -> None:
    done = type_command("rewind", *arguments)

    assert done.exit_code == 2
    assert shown in done.stderr


@pytest.fixture
def turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The last checkpoint of each turn of a thread in the database of the environment."""
    monkeypatch.setenv("GRAPH_AGENT_DB", str(tmp_path / "agent.db"))
    return play(tmp_path / "agent.db", "one", "two")


def test_rewind_restores_the_conversation_and_prints_json(turns: list[str]) -> None:
    first, second = turns

    done = json_of("rewind", first, "--yes")

    assert (done["checkpoint_id"], done["done"], done["files"]) == (first, True, [])
    assert done["head"] > second


def test_fork_accepts_a_shortened_id_and_prints_the_thread_as_json(turns: list[str]) -> None:
    assert json_of("fork", turns[0][-12:], "--as", "mine") == {
        "thread_id": "mine",
        "parent_thread": "thread-1",
        "checkpoint_id": turns[0],
        "turns": 1,
        "open_calls": 0,
    }


def test_an_older_checkpoint_is_not_compacted(turns: list[str]) -> None:
    refused = type_command("compact", turns[0])

    assert (refused.exit_code, turns[0] in str(refused.exception)) == (1, True)
