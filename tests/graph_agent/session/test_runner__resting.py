from langchain_core.messages import AIMessage

from graph_agent.session.graph_runner import turn_outcome, turn_result_of
from graph_agent.session.turn_result import TurnResult


def test_a_rest_at_a_limit_tells_which_one_and_whether_others_share_it() -> None:
    turn = {"outcome": "limit", "budget": "max_tokens", "reason": "it was too much", "shared": True}
    values = {"turn": turn, "messages": [AIMessage("so far")]}

    assert turn_result_of(turn_outcome(values), "t", "c", values) == TurnResult(
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

    assert turn_result_of("resumable", "t", "c", values) == TurnResult("resumable", "t", "c")
