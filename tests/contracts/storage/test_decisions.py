from dataclasses import replace

import pytest

from graph_agent.ports import Answer, Decisions, Question

_ASKED = Question("approval", "c", 1, "digest")
_YES = Answer("approve", "chat", "2026-01-01T00:00:00.000Z")
_NO = Answer("reject", "cli:pid 4711", "2026-01-01T00:00:01.000Z", reason="not that one")


async def test_an_answer_stands_for_its_question(decisions: Decisions) -> None:
    assert await decisions.insert("t", _ASKED, _NO) == _NO
    assert await decisions.find_answers("t", [_ASKED]) == {"c": _NO}


async def test_the_first_answer_wins_and_a_later_one_is_told_whose_it_is(decisions: Decisions) -> None:
    await decisions.insert("t", _ASKED, _YES)

    assert await decisions.insert("t", _ASKED, _NO) == _YES
    assert await decisions.find_answers("t", [_ASKED]) == {"c": _YES}


async def test_edited_arguments_come_back_as_they_were(decisions: Decisions) -> None:
    edit = Answer("edit", "chat", "2026-01-01T00:00:00.000Z", arguments={"command": "ls", "n": [1, None]})

    await decisions.insert("t", _ASKED, edit)

    assert await decisions.find_answers("t", [_ASKED]) == {"c": edit}


async def test_that_a_call_runs_outside_of_the_sandbox_is_kept_with_its_approval(decisions: Decisions) -> None:
    outside = replace(_YES, outside_sandbox=True)

    await decisions.insert("t", _ASKED, outside)

    assert await decisions.find_answers("t", [_ASKED]) == {"c": outside}
    assert await decisions.latest_approval("t", "c", _YES.at) == outside


@pytest.mark.parametrize(
    "other",
    [
        replace(_ASKED, args_digest="other arguments"),
        replace(_ASKED, attempt=2),
        replace(_ASKED, kind="recovery"),
        replace(_ASKED, call_id="d"),
    ],
)
async def test_an_answer_fits_its_own_question_only(decisions: Decisions, other: Question) -> None:
    await decisions.insert("t", _ASKED, _YES)

    assert await decisions.find_answers("t", [other]) == {}
    assert await decisions.insert("t", other, _NO) == _NO


async def test_answers_of_other_threads_do_not_count(decisions: Decisions) -> None:
    await decisions.insert("t", _ASKED, _YES)

    assert await decisions.find_answers("other", [_ASKED]) == {}


async def test_an_answer_that_was_applied_still_stands(decisions: Decisions) -> None:
    await decisions.insert("t", _ASKED, _YES)
    await decisions.mark_applied("t", [_ASKED], "2026-01-01T00:00:05.000Z")

    assert await decisions.find_answers("t", [_ASKED]) == {"c": _YES}


async def test_answers_are_told_for_those_questions_that_have_one(decisions: Decisions) -> None:
    open_one = replace(_ASKED, call_id="open")
    await decisions.insert("t", _ASKED, _YES)

    assert await decisions.find_answers("t", [open_one, _ASKED]) == {"c": _YES}
