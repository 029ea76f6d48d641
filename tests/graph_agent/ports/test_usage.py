from typing import Any

from graph_agent.ports.usage import Budget, add_usage, usage_report

_REQUEST = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120, "requests": 1}


def test_counts_and_costs_are_added_up() -> None:
    once = {**_REQUEST, "cached_input_tokens": 40, "cost": 0.1, "currency": "EUR"}
    again = {**_REQUEST, "estimated_requests": 1, "cost": 0.2, "currency": "EUR"}

    assert add_usage(add_usage(None, once), again) == {
        "input_tokens": 200,
        "cached_input_tokens": 40,
        "output_tokens": 40,
        "total_tokens": 240,
        "requests": 2,
        "estimated_requests": 1,
        "cost": 0.3,
        "currency": "EUR",
    }


def test_amounts_of_two_currencies_make_no_amount() -> None:
    euros = {**_REQUEST, "cost": 0.1, "currency": "EUR"}
    dollars = {**_REQUEST, "cost": 0.2, "currency": "USD"}

    total = add_usage(euros, dollars)

    assert (total["cost"], total["currency"], total["unpriced_requests"]) == (0.1, "EUR", 1)
    assert (usage_report(total)["cost"], usage_report(total)["currency"]) == (None, None)


def test_what_is_no_number_counts_as_nothing() -> None:
    odd: dict[str, Any] = {"input_tokens": "many", "requests": True, "cost": "much"}

    assert add_usage({"requests": 1}, odd) == {"requests": 1}


def test_a_cost_is_told_only_where_all_of_it_is_known() -> None:
    counts = {
        "input_tokens": 100,
        "cached_input_tokens": 0,
        "output_tokens": 20,
        "reasoning_tokens": 0,
        "total_tokens": 120,
        "requests": 1,
    }

    assert usage_report(_REQUEST) == {**counts, "estimated": False, "cost": None, "currency": None}
    assert usage_report({**_REQUEST, "cost": 0.5, "currency": "USD", "estimated_requests": 1}) == {
        **counts,
        "estimated": True,
        "cost": 0.5,
        "currency": "USD",
    }
    assert usage_report(None) == {
        **dict.fromkeys(counts, 0),
        "estimated": False,
        "cost": 0.0,
        "currency": None,
    }


def test_only_limits_on_costs_need_prices() -> None:
    budgets = [Budget(), Budget(max_tokens=1, max_thread_tokens=1), Budget(max_cost=1), Budget(max_thread_cost=1)]

    assert [budget.limits_cost for budget in budgets] == [False, False, True, True]
