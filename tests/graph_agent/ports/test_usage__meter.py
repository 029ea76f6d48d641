from typing import TYPE_CHECKING

from langchain_core.messages import AIMessage, HumanMessage

from graph_agent.ports import ModelRequest
from graph_agent.ports.usage import UNPRICED, EstimateCache, Meter, Rate

if TYPE_CHECKING:
    from langchain_core.messages.ai import UsageMetadata

_REQUEST = ModelRequest([HumanMessage("hello " * 100)], ())
_METER = Meter({"m": Rate(input=2, output=10, cached_input=0.5), "m @ there": Rate(input=4, output=20)}, "EUR")
_TOLD: "UsageMetadata" = {
    "input_tokens": 1_000,
    "output_tokens": 100,
    "total_tokens": 1_100,
    "input_token_details": {"cache_read": 400},
    "output_token_details": {"reasoning": 30},
}
_COUNTS = {
    "input_tokens": 1_000,
    "cached_input_tokens": 400,
    "output_tokens": 100,
    "reasoning_tokens": 30,
    "total_tokens": 1_100,
    "requests": 1,
}


def test_the_providers_word_counts_and_cached_tokens_have_a_price_of_their_own() -> None:
    usage = _METER.usage_of(_REQUEST, AIMessage("hi", usage_metadata=_TOLD), "m @ here")

    assert usage == {**_COUNTS, "cost": (600 * 2 + 400 * 0.5 + 100 * 10) / 1e6, "currency": "EUR"}


def test_a_price_for_one_host_goes_before_that_of_the_name_and_the_name_asked_for_before_the_one_told() -> None:
    elsewhere = AIMessage("hi", usage_metadata=_TOLD, response_metadata={"asked": "m @ there", "model_name": "m"})
    dated = AIMessage("hi", usage_metadata=_TOLD, response_metadata={"model_name": "m"})

    assert _METER.usage_of(_REQUEST, elsewhere, "x @ here")["cost"] == (1_000 * 4 + 100 * 20) / 1e6
    assert _METER.usage_of(_REQUEST, dated, "latest @ here")["cost"] == (600 * 2 + 400 * 0.5 + 100 * 10) / 1e6


def test_without_a_price_no_number_is_made_up() -> None:
    usage = UNPRICED.usage_of(_REQUEST, AIMessage("hi", usage_metadata=_TOLD), "m @ here")

    assert usage == {**_COUNTS, "unpriced_requests": 1}


def test_what_the_provider_does_not_tell_is_estimated_and_marked() -> None:
    usage = _METER.usage_of(_REQUEST, AIMessage("hi"), "m @ here")

    assert (usage["requests"], usage["estimated_requests"], usage["currency"]) == (1, 1, "EUR")
    assert 100 <= usage["input_tokens"] <= 200
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]


def test_a_model_that_uses_nothing_needs_no_price() -> None:
    nothing: UsageMetadata = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}

    assert UNPRICED.usage_of(_REQUEST, AIMessage("hi", usage_metadata=nothing), "offline") == {"requests": 1}


def test_what_a_request_surely_takes_is_half_of_what_it_is_estimated_at() -> None:
    tokens, cost = _METER.minimum_usage(_REQUEST, "m @ here")

    assert 50 <= tokens <= 100
    assert cost == tokens * 0.5 / 1e6
    assert UNPRICED.minimum_usage(_REQUEST, "m @ here") == (tokens, None)


def test_a_long_conversation_is_not_weighed_again_for_each_request() -> None:
    known = EstimateCache()
    wide, narrow = (ModelRequest([HumanMessage(text * 100, id="h")], ()) for text in ("漢", "a"))

    first = UNPRICED.minimum_usage(wide, "m", known)

    assert UNPRICED.minimum_usage(narrow, "m") != first
    assert UNPRICED.minimum_usage(narrow, "m", known) == first
    assert UNPRICED.usage_of(narrow, AIMessage(""), "m", known)["input_tokens"] == 2 * first[0]
