from typing import Any

import pytest

from graph_agent.model.openai.context_windows import known_context_window, parse_context_window, parse_token_limit


@pytest.mark.parametrize(
    ("said", "limit"),
    [
        ("Maximum context length is 8192 tokens, you requested 9001 [context_length_exceeded]", 8192),
        (
            "This model's maximum context length is 128,000 tokens. However, your messages resulted in 130000",
            128_000,
        ),
        ("prompt is too long: 9001 tokens > 8192 maximum", 8192),
        ("request (9001 tokens) exceeds the available context size (8192 tokens), try increasing it", 8192),
        ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 1_048_576),
        ("tokens exceed context window of 2048", 2048),
        ("input length and max_tokens exceed context limit: 199000 + 8192 > 200000", None),
        ("context_length_exceeded", None),
        ("maximum context length is 3", None),
    ],
)
def test_the_limit_is_read_from_the_error_message(said: str, limit: int | None) -> None:
    assert parse_token_limit(said) == limit


@pytest.mark.parametrize(
    ("entry", "tokens"),
    [
        ({"id": "a", "context_length": 65_536, "top_provider": {"context_length": 32_768}}, 65_536),
        ({"id": "a", "max_model_len": 16_384}, 16_384),
        ({"id": "a", "meta": {"n_ctx_train": 131_072, "n_ctx": 8_192}}, 8_192),
        ({"id": "a", "meta": {"n_ctx_train": 131_072}}, 131_072),
        ({"id": "a", "context_length": "many", "meta": None}, None),
        ({"id": "a", "context_length": True, "context_window": -1}, None),
    ],
)
def test_the_window_is_read_under_all_its_names(entry: dict[str, Any], tokens: int | None) -> None:
    assert parse_context_window(entry) == tokens


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("openai/gpt-4o-mini", 128_000),
        ("GPT-4", 8_192),
        ("Qwen3:8b", 40_960),
        ("llama3.1:8b", 131_072),
        ("my", None),
    ],
)
def test_known_families_match_the_beginning_of_the_name(name: str, tokens: int | None) -> None:
    assert known_context_window(name) == tokens
