from typing import Any

import pytest

from graph_agent.graph.limits import budget_limit, step_limit
from graph_agent.ports.usage import UNLIMITED, Budget, UsageTotals

_NEW_BUDGET = "continuing starts a new budget"
_NEXT = "the next request takes 100 tokens or more, this turn has"
_OF_THE_THREAD = "of the 1,000 tokens that max_thread_tokens allows"


def usage(tokens: int = 0, **further: Any) -> dict[str, Any]:
    return {"total_tokens": tokens, **further}


@pytest.mark.parametrize(
    ("budget", "turn", "thread", "expected"),
    [
        (UNLIMITED, usage(10**9), usage(10**9), ""),
        (Budget(max_tokens=1_000), usage(900), usage(5_000), ""),
        (
            Budget(max_tokens=1_000),
            usage(1_200),
            usage(),
            f"this turn used 1,200 tokens of the 1,000 tokens that max_tokens allows; {_NEW_BUDGET}",
        ),
        (
            Budget(max_tokens=1_000),
            usage(901),
            usage(),
            f"{_NEXT} 99 tokens left of what max_tokens allows; {_NEW_BUDGET}",
        ),
        (
            Budget(max_tokens=50),
            usage(),
            usage(),
            f"{_NEXT} 50 tokens left of what max_tokens allows; raise max_tokens to continue",
        ),
        (
            Budget(max_thread_tokens=1_000),
            usage(10),
            usage(1_000),
            f"this thread used 1,000 tokens {_OF_THE_THREAD}; raise max_thread_tokens to continue",
        ),
        (Budget(max_cost=0.5), usage(1, cost=0.4, currency="EUR"), usage(), ""),
        (
            Budget(max_cost=0.5),
            usage(1, cost=0.5, currency="EUR"),
            usage(),
            f"this turn used 0.5000 EUR of the 0.5000 EUR that max_cost allows; {_NEW_BUDGET}",
        ),
        (
            Budget(max_thread_cost=0.5),
            usage(),
            usage(1, cost=0.1, currency="EUR", unpriced_requests=1),
            "the cost of this thread is not known, so max_thread_cost cannot be kept: [prices] lacks the model",
        ),
    ],
)
def test_the_next_request_is_held_against_what_is_left(
    budget: Budget, turn: dict[str, Any], thread: dict[str, Any], expected: str
) -> None:
    assert budget_limit(budget, UsageTotals(turn, thread), (100, 0.01)).get("reason", "") == expected


def test_a_limit_on_costs_cannot_be_kept_without_a_price() -> None:
    pause = budget_limit(Budget(max_cost=1), UsageTotals(), (100, None))

    assert (pause["budget"], "lacks the model" in pause["reason"]) == ("max_cost", True)


def test_used_up_steps_are_told_with_their_number() -> None:
    assert [step_limit(steps)["reason"].partition(",")[0] for steps in (1, 3)] == [
        "it made 1 model request",
        "it made 3 model requests",
    ]
