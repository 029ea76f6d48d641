import pytest

from graph_agent.calls import STATUSES, fitting_answers


@pytest.mark.parametrize(
    ("status", "wants_answer", "kinds"),
    [
        ("awaiting_approval", False, ("approve", "edit", "reject")),
        ("awaiting_approval", True, ("answer", "reject")),
        ("interrupted", False, ("retry", "done", "cancel")),
        ("interrupted", True, ("retry", "done", "cancel")),
    ],
)
def test_a_question_takes_the_answers_of_its_kind(status: str, wants_answer: bool, kinds: tuple[str, ...]) -> None:
    assert fitting_answers({"status": status, "wants_answer": wants_answer}) == kinds


@pytest.mark.parametrize("status", sorted(set(STATUSES) - {"awaiting_approval", "interrupted"}))
def test_what_waits_for_nothing_takes_no_answer(status: str) -> None:
    assert fitting_answers({"status": status, "wants_answer": True}) == ()
