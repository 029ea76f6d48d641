from typing import Any

import pytest

from graph_agent.calls import ToolCallInfo
from graph_agent.graph.limits import (
    budget_limit,
    count_failures,
    step_limit,
    too_many_failures,
    too_many_refusals,
    usage_of_calls,
)
from graph_agent.graph.state import ConsecutiveFailures
from graph_agent.ports.usage import UNLIMITED, Budget, UsageTotals

_NEW_BUDGET = "continuing starts a new budget"
_NEXT = "the next request needs at least 100 tokens, but this turn has"


def usage(tokens: int = 0, **further: Any) -> dict[str, Any]:
    return {"total_tokens": tokens, **further}


@pytest.mark.parametrize(
    ("budget", "turn", "thread", "reason"),
    [
        (UNLIMITED, usage(10**9), usage(10**9), None),
        (Budget(max_tokens=1_000), usage(900), usage(5_000), None),
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
            (f"{_NEXT} 99 tokens left of what max_tokens allows; {_NEW_BUDGET}"),
        ),
        (
            Budget(max_tokens=50),
            usage(),
            usage(),
            (f"{_NEXT} 50 tokens left of what max_tokens allows; raise max_tokens to continue"),
        ),
        (
            Budget(max_thread_tokens=1_000),
            usage(10),
            usage(1_000),
            (
                "this thread used 1,000 tokens of the 1,000 tokens that max_thread_tokens allows; "
                "raise max_thread_tokens to continue"
            ),
        ),
        (Budget(max_cost=0.5), usage(1, cost=0.4, currency="EUR"), usage(), None),
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
            "the cost of this thread is unknown, so max_thread_cost cannot be enforced: add the model to [prices]",
        ),
    ],
)
def test_a_request_is_not_made_that_would_pass_a_budget(
    budget: Budget, turn: dict[str, Any], thread: dict[str, Any], reason: str | None
) -> None:
    assert budget_limit(budget, UsageTotals(turn, thread), (100, 0.01)).get("reason") == reason


def test_a_limit_on_costs_cannot_be_kept_without_a_price() -> None:
    limit = budget_limit(Budget(max_cost=1), UsageTotals(), (100, None))

    assert (limit["budget"], "add the model to [prices]" in limit["reason"]) == ("max_cost", True)


def test_the_step_limit_names_its_number() -> None:
    reasons = [step_limit(steps)["reason"].partition(",")[0] for steps in (1, 3)]

    assert reasons == ["it made 1 model request", "it made 3 model requests"]


def call(status: str, *, tool: str = "bash", command: str = "make", **fields: Any) -> ToolCallInfo:
    record: Any = {"call_id": "c", "tool_name": tool, "arguments": {"command": command}, "status": status, **fields}
    return record  # type: ignore[no-any-return]  # what else a record has plays no part


def counts_after(*calls: ToolCallInfo) -> ConsecutiveFailures:
    counts: ConsecutiveFailures = {}
    for one in calls:
        counts = count_failures(counts, [one])
    return counts


_FAILED, _OK = call("error", started=True), call("success", started=True)
_LATE = call("error", started=True, metadata={"error_type": "timeout"})
_LATE_TOO = call("error", started=True, command="other", metadata={"error_type": "timeout"})
_UNKNOWN = call("error", tool="no_tool", started=False)
_UNREADABLE = {**_UNKNOWN, "arguments": {}}
"""A call whose arguments were cut off or malformed."""
_DENIED = call("cancelled", decision="deny", rule="deny bash(make)")
_REFUSED = call("cancelled", decision="reject")
_AGAIN, _OTHER = call("pending"), call("awaiting_approval", command="ls")
_TIMEOUTS = "bash ran into its time limit 3 times in a row"
_FAILURES = "the same call of bash failed 3 times in a row"


@pytest.mark.parametrize(
    ("before", "now", "reason"),
    [
        ([_LATE, _LATE_TOO, _LATE], _OTHER, _TIMEOUTS),
        ([_LATE, _LATE_TOO], _OTHER, ""),
        ([_LATE, _LATE_TOO, _OK, _LATE], _OTHER, ""),
        ([_LATE, _LATE_TOO, _LATE], call("pending", tool="ls"), ""),
        ([_FAILED] * 3, _AGAIN, _FAILURES),
        ([_FAILED] * 3, _OTHER, ""),
        ([_FAILED, _FAILED, _OK, _FAILED], _AGAIN, ""),
        ([_FAILED, _UNKNOWN, _FAILED, call("success", tool="ls", started=True), _FAILED], _AGAIN, _FAILURES),
        ([_UNKNOWN] * 4, call("pending", tool="no_tool"), ""),
        ([_FAILED] * 3, call("error"), ""),
        ([_OK, _OK], _AGAIN, ""),
    ],
)
def test_a_call_waits_for_a_person_after_three_time_outs_of_its_tool_or_three_failures_of_its_own(
    before: list[ToolCallInfo], now: ToolCallInfo, reason: str
) -> None:
    assert too_many_failures(counts_after(*before), [now]) == reason
    assert (counts_after(*before) == {}) == (before == [_OK, _OK])


@pytest.mark.parametrize(
    ("calls", "reason"),
    [
        (
            [call("error", tool="no_tool", started=False, command=str(number)) for number in range(5)],
            "5 calls of no_tool in a row could not run: the tool is unknown or its arguments were invalid",
        ),
        ([_DENIED] * 3, "the same call was refused 3 times"),
        ([_DENIED, _REFUSED, _OK, _DENIED], "the same call was refused 3 times"),
        (
            [call("cancelled", decision="deny", rule="deny bash(make)", command=f"make {n}") for n in range(5)],
            "5 calls of bash in a row could not run: denied by deny bash(make)",
        ),
        ([_UNKNOWN] * 3, "the same call was refused 3 times"),
        ([_UNREADABLE] * 4, ""),
        ([_UNREADABLE, _UNREADABLE, _DENIED, _UNREADABLE, _UNREADABLE, _UNREADABLE], ""),
        ([_UNREADABLE, _UNREADABLE, _UNREADABLE, _OK, _UNREADABLE, _UNREADABLE], ""),
        ([_REFUSED, _OK, _REFUSED, _UNKNOWN, _REFUSED], "the same call was refused 3 times"),
        ([_REFUSED, _REFUSED, call("cancelled", decision="reject", command="other")], ""),
        ([_FAILED] * 9, ""),
    ],
)
def test_the_model_is_not_asked_again_after_five_calls_that_could_not_run_or_three_refusals(
    calls: list[ToolCallInfo], reason: str
) -> None:
    assert too_many_refusals(counts_after(*calls)) == reason


def test_calls_of_one_message_count_one_by_one() -> None:
    assert too_many_failures(count_failures({}, [_LATE, _LATE_TOO, _LATE]), [_AGAIN]) == _TIMEOUTS


def test_the_usage_of_calls_is_added_up_and_anything_else_there_is_ignored() -> None:
    usages = ({"total_tokens": 5, "requests": 2}, "much", {"requests": 1, "cost": "high"})
    calls = [call("success", metadata={"usage": usage}) for usage in usages]

    assert usage_of_calls(calls, {}) == {"total_tokens": 5, "requests": 3}
    assert usage_of_calls([], {}) == {}
    assert usage_of_calls([call("cancelled")], {"c": {"requests": 1}}) == {"requests": 1}


def test_for_the_turn_counts_what_a_call_used_since_the_turn_got_a_new_budget() -> None:
    total, of_turn = {"total_tokens": 5, "requests": 3}, {"total_tokens": 2, "requests": 1}
    calls = [call("success", metadata={"usage": total, "turn_usage": of_turn})]

    assert (usage_of_calls(calls, {}, of_turn=True), usage_of_calls(calls, {})) == (of_turn, total)
