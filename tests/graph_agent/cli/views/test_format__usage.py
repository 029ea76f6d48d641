from typing import Any

import pytest

from graph_agent.cli.views.format import format_cost, format_cost_lines, format_short_usage, format_usage
from graph_agent.ports.usage import told_usage


def used(**further: Any) -> dict[str, Any]:
    return told_usage({"input_tokens": 12_000, "output_tokens": 345, "total_tokens": 12_345, **further})


def test_all_that_is_known_stands_on_the_line() -> None:
    whole = used(cached_input_tokens=8_000, reasoning_tokens=200, cost=0.0123, currency="EUR")

    assert format_usage(whole) == "12,000 in (8,000 cached), 345 out (200 reasoning), cost 0.0123 EUR"
    assert format_short_usage(whole) == "12.3k tokens · cost 0.0123 EUR"


def test_estimates_are_marked_and_unknown_prices_are_called_so() -> None:
    assert format_usage(used(estimated_requests=1)) == "~12,000 in, ~345 out, cost unknown"
    assert (
        format_short_usage(used(estimated_requests=1, cost=2.0, currency="USD")) == "~12.3k tokens · cost ~2.00 USD"
    )


@pytest.mark.parametrize(
    ("cost", "shown"), [(0.0, "0"), (0.00002, "0.000020 USD"), (0.05, "0.0500 USD"), (12.5, "12.50 USD")]
)
def test_an_amount_is_shown_as_finely_as_it_is_small(cost: float, shown: str) -> None:
    assert format_cost(used(cost=cost, currency="USD")) == shown


@pytest.mark.parametrize(("tokens", "shown"), [(0, "0"), (999, "999"), (2_500, "2.5k"), (3_250_000, "3.25M")])
def test_many_tokens_are_shown_in_short(tokens: int, shown: str) -> None:
    assert format_short_usage(told_usage({"total_tokens": tokens})).startswith(f"{shown} tokens")


def test_costs_are_told_for_turn_and_thread_and_how_to_let_them_be_known() -> None:
    turn = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3, "requests": 1}

    assert list(format_cost_lines(turn, turn)) == [
        "this turn: 1 request, 1 in, 2 out, cost unknown",
        "this thread: 1 request, 1 in, 2 out, cost unknown",
        'A price is missing: [prices."MODEL"] in config.toml, with input and output per million tokens.',
    ]
    assert list(format_cost_lines(None, None)) == [
        "this turn: 0 requests, 0 in, 0 out, cost 0",
        "this thread: 0 requests, 0 in, 0 out, cost 0",
    ]
