from typing import Any

import pytest

from graph_agent.acp.questions import chosen_option, options_for, protocol_options
from graph_agent.ports import GrantEffect, Proposal
from tests.fakes.scripted_session import approval, recovery

PROPOSALS: dict[GrantEffect, Proposal] = {
    "allow": Proposal(("bash(touch x)",), coverage="exactly this"),
    "deny": Proposal(("bash(touch x)",)),
}
BASH = approval("c1", "bash", {"command": "touch x"})
HARMLESS = ("reject", "cancel")


def _asking(tool: str, arguments: dict[str, Any]) -> Any:
    return approval("c1", tool, arguments, requires_input=True)


@pytest.mark.parametrize(
    ("item", "answers"),
    [
        (BASH, ["reject", "approve", "approve", "approve", "reject", "reject"]),
        (recovery("c1", "bash", {"command": "touch x"}), ["cancel", "done", "retry"]),
        (_asking("ask_user", {"question": "Which?", "options": ["a", "b"]}), ["reject", "answer", "answer"]),
        (_asking("ask_user", {"question": "Which?"}), ["reject"]),
        (_asking("present_plan", {"plan": "1. look"}), ["reject", "answer", "answer"]),
    ],
)
def test_the_first_option_is_harmless(item: Any, answers: list[str]) -> None:
    options = options_for(item, PROPOSALS)

    assert [option.answer for option in options] == answers
    assert options[0].answer in HARMLESS
    assert options[0].kind == "reject_once"
    assert len({option.id for option in options}) == len(options)
    for option in options:
        chosen = {"outcome": {"outcome": "selected", "optionId": option.id}}
        assert chosen_option(chosen, options) == option
    assert [one["kind"] for one in protocol_options(options)] == [option.kind for option in options]


@pytest.mark.parametrize(
    "outcome",
    [
        None,
        "approve",
        {},
        {"outcome": "approve"},
        {"outcome": {"outcome": "cancelled"}},
        {"outcome": {"outcome": "selected"}},
        {"outcome": {"outcome": "selected", "optionId": "sudo"}},
        {"outcome": {"outcome": "selected", "optionId": ["approve"]}},
    ],
)
def test_a_response_that_selects_no_option_is_no_answer(outcome: Any) -> None:
    assert chosen_option(outcome, options_for(BASH)) is None


def test_a_rule_that_does_not_fit_on_its_button_is_not_offered() -> None:
    long = Proposal((f"bash({'x' * 500})",))

    assert [option.id for option in options_for(BASH, {"allow": long, "deny": long})] == ["reject", "approve"]
