from typing import Any

import pytest

from graph_agent.model.openai.stream import latest_usage, parse_usage

_TOLD = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}


@pytest.mark.parametrize(
    "told",
    [
        {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
        {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": None},
        {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 3},
        {"prompt_tokens": 5.0, "completion_tokens": "2"},
        {"input_tokens": 5, "output_tokens": 2},
        {"prompt_tokens": 5, "total_tokens": 7},
        {"completion_tokens": 2, "total_tokens": 7},
    ],
)
def test_the_counts_are_read_under_all_their_names_and_in_all_their_forms(told: dict[str, Any]) -> None:
    assert parse_usage(told) == _TOLD


@pytest.mark.parametrize(
    "told",
    [
        None,
        "7",
        {},
        {"total_tokens": 7},
        {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        {"prompt_tokens": 5},
        {"prompt_tokens": -5, "completion_tokens": -2},
        {"prompt_tokens": True, "completion_tokens": 2},
        {"prompt_tokens": 5, "completion_tokens": 10**40},
        {"prompt_tokens": 5, "completion_tokens": float("inf")},
        {"prompt_tokens": "9" * 5_000, "completion_tokens": 1},
        {"prompt_tokens": 5, "completion_tokens": 1.5},
    ],
)
def test_incomplete_counts_are_ignored(told: Any) -> None:
    assert parse_usage(told) is None


def test_cached_and_reasoning_tokens_are_read_where_the_server_sends_them() -> None:
    openai = {"prompt_tokens_details": {"cached_tokens": 3}, "completion_tokens_details": {"reasoning_tokens": 1}}
    deepseek = {"prompt_cache_hit_tokens": 9, "prompt_tokens_details": None}

    assert parse_usage({"prompt_tokens": 5, "completion_tokens": 2, **openai}) == {
        **_TOLD,
        "input_token_details": {"cache_read": 3},
        "output_token_details": {"reasoning": 1},
    }
    assert parse_usage({"prompt_tokens": 5, "completion_tokens": 2, **deepseek}) == {
        **_TOLD,
        "input_token_details": {"cache_read": 5},
    }


def test_the_newest_usage_counts_wherever_it_is() -> None:
    counts = {"prompt_tokens": 5, "completion_tokens": 2}
    silent = {"usage": {"prompt_tokens": 0, "completion_tokens": 0}, "choices": [{"usage": None}], "x_groq": "x"}

    told = [latest_usage(body, None) for body in ({"usage": counts}, {"choices": [{"usage": counts}]})]

    assert [*told, latest_usage({"x_groq": {"usage": counts}}, None)] == [_TOLD] * 3
    assert latest_usage(silent, told[0]) == _TOLD
