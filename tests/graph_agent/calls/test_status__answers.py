import pytest

from graph_agent.calls import STATUSES, allowed_answers


@pytest.mark.parametrize(
    ("status", "requires_input", "kinds"),
    [
        ("awaiting_approval", False, ("approve", "edit", "reject")),
        ("awaiting_approval", True, ("answer", "reject")),
        ("interrupted", False, ("retry", "done", "cancel")),
        ("interrupted", True, ("retry", "done", "cancel")),
    ],
)
def test_a_question_takes_the_answers_of_its_kind(
    status: str, requires_input: bool, kinds: tuple[str, ...]
) -> None:
    assert allowed_answers({"status": status, "requires_input": requires_input}) == kinds


@pytest.mark.parametrize("status", sorted(set(STATUSES) - {"awaiting_approval", "interrupted"}))
def test_what_waits_for_nothing_takes_no_answer(status: str) -> None:
    assert allowed_answers({"status": status, "requires_input": True}) == ()
