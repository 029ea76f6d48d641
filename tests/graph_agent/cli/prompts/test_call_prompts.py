from pathlib import Path

import pytest

from graph_agent.cli.prompts.questions import StopTurn
from tests.fakes.scripted_session import approval, recovery
from tests.graph_agent.cli.prompts.scene import KEYS, A, Scene


@pytest.mark.parametrize(
    ("lines", "decided"),
    [
        (("r",), ("retry", "")),
        (("c",), ("cancel", "")),
        (("x", "d", " it is there "), ("done", "it is there")),
    ],
)
async def test_an_interrupted_call_is_retried_done_or_cancelled(
    tmp_path: Path, lines: tuple[str, ...], decided: tuple[str, str]
) -> None:
    scene = Scene(tmp_path, recovery("call-a", "bash", {"command": "make"}))

    await scene.asked(*lines)

    assert scene.session.log == [("decide", "call-a", *decided)]


async def test_what_still_runs_can_be_ended_before_the_call_is_tried_again(tmp_path: Path) -> None:
    scene = Scene(tmp_path, recovery("call-a", "bash", {"command": "make"}, processes=(7, 8)))

    shown = await scene.asked("e", "r")

    assert scene.session.log == [("end", "call-a"), ("decide", "call-a", "retry", "")]
    assert "  still running: pid 7, 8; a retry waits until they have exited" in shown
    assert [line for line in shown if line.endswith("> ")] == [
        "[r]etry  [d]one  [c]ancel  [e]nd its processes > ",
        "[r]etry  [d]one  [c]ancel > ",
    ]


_ARGUMENTS = {"question": "Tabs or\x1b[2Jblanks?", "options": ["tabs", "blanks"]}
_Q = approval("call-q", "ask_user", _ARGUMENTS, requires_input=True, risk="low")
_HOW = "Type an answer, or a number; /skip skips the question, /stop stops the turn."


@pytest.mark.parametrize(
    ("lines", "decided"),
    [
        (("2",), ("answer", "blanks")),
        (("", "  both "), ("answer", "both")),
        (("3",), ("answer", "3")),
        (("y",), ("answer", "y")),
        (("/skip",), ("reject", "")),
    ],
)
async def test_a_question_is_answered_by_number_in_words_or_not_at_all(
    tmp_path: Path, lines: tuple[str, ...], decided: tuple[str, str]
) -> None:
    scene = Scene(tmp_path, _Q)

    shown = await scene.asked(*lines)

    assert scene.session.log == [("decide", "call-q", *decided)]
    assert shown[:6] == [
        "Question call-q",
        "  │ Tabs or\\x1b[2Jblanks?",
        "  1. tabs",
        "  2. blanks",
        _HOW,
        "<dropped>",
    ]


async def test_stop_ends_the_turn_and_answers_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path, _Q)

    with pytest.raises(StopTurn):
        await scene.asked("/stop")

    assert scene.session.log == []


async def test_a_question_stands_beside_approvals_and_is_never_answered_with_them_all_at_once(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path, A, _Q)

    shown = await scene.asked("y", "tabs")

    assert scene.session.log == [("decide", "call-a", "approve", ""), ("decide", "call-q", "answer", "tabs")]
    assert [line for line in shown if line.endswith("> ")] == [KEYS, "answer > "]
