from langchain_core.messages import AIMessage

from graph_agent.session.runner import outcome_of, rest_of
from graph_agent.session.types import Rest


def test_a_rest_at_a_limit_tells_which_one_and_whether_others_share_it() -> None:
    turn = {"outcome": "limit", "budget": "max_tokens", "reason": "it was too much", "shared": True}
    values = {"turn": turn, "messages": [AIMessage("so far")]}

    assert rest_of(outcome_of(values), "t", "c", values) == Rest(
        "limit",
        "t",
        "c",
        "so far",
        error="the turn was paused at a limit: it was too much",
        budget="max_tokens",
        is_shared=True,
    )


def test_another_rest_says_nothing_of_the_limit_that_its_turn_came_to_before() -> None:
    values = {"turn": {"outcome": "limit", "budget": "max_tokens", "reason": "it was too much", "shared": True}}

    assert rest_of("broken_off", "t", "c", values) == Rest("broken_off", "t", "c")
