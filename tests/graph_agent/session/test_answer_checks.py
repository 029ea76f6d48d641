from dataclasses import replace

import pytest

from graph_agent.errors import AnswerRefused
from graph_agent.ports import AlwaysAllow, Answer, Grant, Scope
from graph_agent.session.answer_checks import attach_grant, review_edit
from tests.fakes.scripted_session import approval
from tests.fakes.scripted_toolbox import ScriptedToolbox

_SCOPE = Scope("t1", "acceptEdits")
_AT = "2026-01-01T00:00:00.000Z"


async def test_a_question_with_other_arguments_shows_them_as_they_are_judged() -> None:
    item = approval("c1", "write_x", {"path": "a"}, preview={"kind": "text", "text": "old"}, reason="old")

    shown = await review_edit(item, {"path": "b"}, ScriptedToolbox(), _SCOPE)

    changed = {"arguments": {"path": "b"}, "preview": None, "summary": "", "risk": "medium"}
    assert (shown.call, shown.question) == ({**item.call, **changed}, replace(item.question, reason="it writes"))


@pytest.mark.parametrize("tool", ["deny_x", "bad_x"])
async def test_arguments_that_may_not_run_are_refused(tool: str) -> None:
    with pytest.raises(AnswerRefused, match="The edited arguments were not accepted: "):
        await review_edit(approval("c1", tool, {}), {}, ScriptedToolbox(), _SCOPE)


def test_an_answer_for_always_carries_the_mode_and_place_it_was_given_in() -> None:
    answer = Answer("approve", "chat", _AT)

    given = attach_grant(answer, AlwaysAllow("project", ("bash(ls)", "bash(rm x)"), "sub"), "c1", _SCOPE, "/w")

    grant = Grant("project", ("bash(ls)", "bash(rm x)"), "acceptEdits", "t1", "/w", "c1", "chat", _AT, "sub")
    assert given == replace(answer, grant=grant, reason="always in this project: bash(ls), bash(rm x)")
