from typing import Any

import pytest

from graph_agent.model.openai.usage import newest_usage, usage_in

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
    assert usage_in(told) == _TOLD


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
def test_what_is_no_count_or_only_half_of_it_tells_nothing(told: Any) -> None:
    assert usage_in(told) is None


def test_what_was_cached_and_what_was_thought_is_told_as_far_as_the_server_does() -> None:
    openai = {"prompt_tokens_details": {"cached_tokens": 3}, "completion_tokens_details": {"reasoning_tokens": 1}}
    deepseek = {"prompt_cache_hit_tokens": 9, "prompt_tokens_details": None}

    assert usage_in({"prompt_tokens": 5, "completion_tokens": 2, **openai}) == {
        **_TOLD,
        "input_token_details": {"cache_read": 3},
        "output_token_details": {"reasoning": 1},
    }
    assert usage_in({"prompt_tokens": 5, "completion_tokens": 2, **deepseek}) == {
        **_TOLD,
        "input_token_details": {"cache_read": 5},
    }


def test_the_newest_chunk_that_tells_it_counts_wherever_it_stands() -> None:
    counts = {"prompt_tokens": 5, "completion_tokens": 2}
    silent = {"usage": {"prompt_tokens": 0, "completion_tokens": 0}, "choices": [{"usage": None}], "x_groq": "x"}

    told = [newest_usage(body, None) for body in ({"usage": counts}, {"choices": [{"usage": counts}]})]

    assert [*told, newest_usage({"x_groq": {"usage": counts}}, None)] == [_TOLD] * 3
    assert newest_usage(silent, told[0]) == _TOLD
