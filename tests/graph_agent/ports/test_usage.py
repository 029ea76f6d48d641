import base64
import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from graph_agent.ports import ModelRequest
from graph_agent.ports.usage import (
    UNPRICED,
    Budget,
    EstimateCache,
    Meter,
    Rate,
    SharedBudget,
    UsageTotals,
    add_usage,
    estimate_message_tokens,
    estimate_request_tokens,
    estimate_tokens,
    usage_report,
)

_USAGE = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120, "requests": 1}


def test_counts_and_costs_are_added_up() -> None:
    once = {**_USAGE, "cached_input_tokens": 40, "cost": 0.1, "currency": "EUR"}
    again = {**_USAGE, "estimated_requests": 1, "cost": 0.2, "currency": "EUR"}

    doubled = {key: 2 * count for key, count in _USAGE.items()}
    others = {"cached_input_tokens": 40, "estimated_requests": 1, "cost": 0.3, "currency": "EUR"}
    assert add_usage(add_usage(None, once), again) == doubled | others


def test_amounts_of_two_currencies_make_no_amount() -> None:
    total = add_usage({**_USAGE, "cost": 0.1, "currency": "EUR"}, {**_USAGE, "cost": 0.2, "currency": "USD"})

    assert (total["cost"], total["currency"], total["unpriced_requests"]) == (0.1, "EUR", 1)
    assert (usage_report(total)["cost"], usage_report(total)["currency"]) == (None, None)


def test_what_cost_nothing_until_now_has_no_currency() -> None:
    total = add_usage({"cost": 0.0, "unpriced_requests": 0}, {**_USAGE, "cost": 0.2, "currency": "USD"})

    assert (usage_report(total)["cost"], usage_report(total)["currency"]) == (0.2, "USD")


def test_what_is_no_number_counts_as_nothing() -> None:
    odd: dict[str, Any] = {"input_tokens": "many", "requests": True, "cost": "much"}

    assert add_usage({"requests": 1}, odd) == {"requests": 1}


@pytest.mark.parametrize(
    ("usage", "is_estimated", "cost", "currency"),
    [
        (_USAGE, False, None, None),
        ({**_USAGE, "cost": 0.5, "currency": "USD", "estimated_requests": 1}, True, 0.5, "USD"),
        (None, False, 0.0, None),
    ],
    ids=["no price", "a price", "nothing used"],
)
def test_a_report_has_a_cost_only_where_all_of_it_is_known(
    usage: dict[str, Any] | None, is_estimated: bool, cost: float | None, currency: str | None
) -> None:
    counts = {"cached_input_tokens": 0, "reasoning_tokens": 0} | (_USAGE if usage else dict.fromkeys(_USAGE, 0))

    assert usage_report(usage) == {**counts, "estimated": is_estimated, "cost": cost, "currency": currency}


def test_only_limits_on_costs_need_prices() -> None:
    budgets = [Budget(), Budget(max_tokens=1, max_thread_tokens=1), Budget(max_cost=1), Budget(max_thread_cost=1)]

    assert [budget.limits_cost for budget in budgets] == [False, False, True, True]


_REQUEST = ModelRequest([HumanMessage("hello " * 100)], ())
_METER = Meter({"m": Rate(input=2, output=10, cached_input=0.5), "m @ there": Rate(input=4, output=20)}, "EUR")
_REPORTED: Any = {
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
_COST, _COST_THERE = (600 * 2 + 400 * 0.5 + 100 * 10) / 1e6, (1_000 * 4 + 100 * 20) / 1e6


@pytest.mark.parametrize(
    ("meter", "label", "metadata", "price"),
    [
        (_METER, "m @ here", {}, {"cost": _COST, "currency": "EUR"}),
        (_METER, "x @ here", {"asked": "m @ there", "model_name": "m"}, {"cost": _COST_THERE, "currency": "EUR"}),
        (_METER, "latest @ here", {"model_name": "m"}, {"cost": _COST, "currency": "EUR"}),
        (UNPRICED, "m @ here", {}, {"unpriced_requests": 1}),
    ],
    ids=["by name", "by the host that was asked", "by the name the model calls itself", "no price"],
)
def test_what_the_provider_reports_is_counted_and_priced(
    meter: Meter, label: str, metadata: dict[str, str], price: dict[str, Any]
) -> None:
    reply = AIMessage("hi", usage_metadata=_REPORTED, response_metadata=metadata)

    assert meter.usage_of(_REQUEST, reply, label) == {**_COUNTS, **price}


def test_what_the_provider_does_not_report_is_estimated_and_marked() -> None:
    usage = _METER.usage_of(_REQUEST, AIMessage("hi"), "m @ here")

    assert (usage["requests"], usage["estimated_requests"], usage["currency"]) == (1, 1, "EUR")
    assert 100 <= usage["input_tokens"] <= 200
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]


def test_a_model_that_uses_nothing_needs_no_price() -> None:
    nothing: Any = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}

    assert UNPRICED.usage_of(_REQUEST, AIMessage("hi", usage_metadata=nothing), "offline") == {"requests": 1}


def test_a_request_certainly_takes_half_of_its_estimate() -> None:
    tokens, cost = _METER.minimum_usage(_REQUEST, "m @ here")

    assert 50 <= tokens <= 100
    assert cost == tokens * 0.5 / 1e6
    assert UNPRICED.minimum_usage(_REQUEST, "m @ here") == (tokens, None)


def test_a_long_conversation_is_not_estimated_again_for_each_request() -> None:
    known = EstimateCache()
    wide, narrow = (ModelRequest([HumanMessage(text * 100, id="h")], ()) for text in ("漢", "a"))

    first = UNPRICED.minimum_usage(wide, "m", known)

    assert UNPRICED.minimum_usage(narrow, "m") != first
    assert UNPRICED.minimum_usage(narrow, "m", known) == first
    assert UNPRICED.usage_of(narrow, AIMessage(""), "m", known)["input_tokens"] == 2 * first[0]


def _used(tokens: int, requests: int = 1) -> UsageTotals:
    usage = {"total_tokens": tokens, "requests": requests}
    return UsageTotals(usage, usage)


def test_a_shared_budget_adds_up_all_agents_and_what_their_requests_take_at_least() -> None:
    shared = SharedBudget(Budget(), 50)
    own = UsageTotals({"total_tokens": 10, "requests": 1}, {"total_tokens": 100, "requests": 7})
    shared.set_own_usage("p", own, 1, {"c1", "c2"})
    shared.add_sub_agent("a", "p", "c1", _used(1))
    shared.add_sub_agent("b", "p", "c2", UsageTotals())
    shared.set_sub_agent_usage("b", _used(2, 3))
    shared.begin_request("a", (1_000, None))

    total, steps = shared.total_usage(), shared.steps
    shared.end_request("a")

    assert (total.turn["total_tokens"], total.thread["total_tokens"], steps) == (1_013, 1_103, 6)
    assert (shared.total_usage().turn, shared.steps) == ({"total_tokens": 13, "requests": 5}, 5)


def test_a_sub_agent_that_has_ended_counts_until_a_state_above_has_its_usage() -> None:
    shared = SharedBudget(Budget(), 50)
    shared.set_own_usage("p", UsageTotals(), 1, {"c1"})
    shared.add_sub_agent("a", "p", "c1", _used(1))
    shared.add_sub_agent("deep", "a", "c9", _used(5))

    def total_after(*steps: Callable[[], None]) -> int:
        for step in steps:
            step()
        return int(shared.total_usage().turn["total_tokens"])

    assert [
        total_after(lambda: shared.end_sub_agent("deep")),
        total_after(lambda: shared.set_sub_agent_usage("a", _used(6))),
        total_after(lambda: shared.end_sub_agent("a"), lambda: shared.set_own_usage("p", UsageTotals(), 1, {"c1"})),
        total_after(lambda: shared.set_own_usage("p", _used(6), 1, ())),
    ] == [6, 6, 6, 6]


_BYTES = b"".join(hashlib.sha256(bytes([number])).digest() for number in range(30))
_CODE = "def keep(self, path: str, limit: int = 200) -> list[str]:\n    return sorted(self._seen[path])[:limit]\n"
_PROSE = "The quick brown fox jumps over the lazy dog, and nobody in the village ever found out why it did. "
_CHINESE = "图代理是一个可以随时终止的终端编码助手。它把每一次工具调用都记录在数据库里。"


@pytest.mark.parametrize(
    ("text", "tokens_by_table"),
    [
        (_PROSE * 10, 221),
        (_CODE * 10, 300),
        (_CHINESE * 10, 390),
        (base64.b64encode(_BYTES).decode(), 931),
        (_BYTES.hex(), 1_080),
    ],
    ids=["prose", "code", "chinese", "base64", "hex"],
)
def test_an_estimate_stays_near_the_count_of_a_real_table(text: str, tokens_by_table: int) -> None:
    assert 0.8 <= estimate_tokens(text) / tokens_by_table <= 1.4


@pytest.mark.parametrize("text", ["a", " ", "\n", ".", "é", "好", "🎉", "\ud800", "\x00"])
def test_no_text_is_free_but_the_empty_one(text: str) -> None:
    assert (estimate_tokens(""), estimate_tokens(text) >= 1) == (0, True)


def test_a_message_costs_its_text_its_calls_its_frame_and_its_pictures() -> None:
    call = {"name": "read_file", "args": {"path": "a.txt"}, "id": "c1"}
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    spoken, calling = AIMessage("I look."), AIMessage("I look.", tool_calls=[call])

    assert estimate_tokens("I look.") < estimate_message_tokens(spoken) < estimate_message_tokens(calling)
    assert estimate_message_tokens(HumanMessage([{"type": "text", "text": "What is this?"}, picture])) > 1_000


def test_a_request_costs_the_sum_of_its_messages_and_declarations() -> None:
    messages = [HumanMessage("Look."), ToolMessage("found", tool_call_id="c1")]
    tool = {"type": "function", "function": {"name": "grep", "parameters": {"type": "object"}}}

    assert estimate_request_tokens(messages, [tool]) == (
        sum(map(estimate_message_tokens, messages)) + EstimateCache().declarations_tokens([tool])
    )


def test_a_declaration_is_estimated_once_for_as_long_as_it_is_the_same_one() -> None:
    known, tool = EstimateCache(), {"function": {"name": "ls", "description": "lists"}}
    once = known.declarations_tokens([tool])

    tool["function"]["description"] = "lists " * 100

    assert known.declarations_tokens([tool]) == once
    assert known.declarations_tokens([dict(tool)]) == EstimateCache().declarations_tokens([tool]) > once
