from typing import Any, cast

import pytest

from graph_agent.calls import ToolCallInfo
from graph_agent.graph.limits import count_failures, too_many_failures, too_many_refusals
from graph_agent.graph.state import ConsecutiveFailures


def _call(status: str, *, tool: str = "bash", command: str = "make", **fields: Any) -> ToolCallInfo:
    call = {"call_id": "c", "tool_name": tool, "arguments": {"command": command}, "status": status, **fields}
    return cast("ToolCallInfo", call)


def _after(*calls: ToolCallInfo) -> ConsecutiveFailures:
    failures: ConsecutiveFailures = {}
    for call in calls:
        failures = count_failures(failures, [call])
    return failures


_FAILED = _call("error", started=True)
_LATE = _call("error", started=True, metadata={"error_type": "timeout"})
_LATER = _call("error", started=True, command="other", metadata={"error_type": "timeout"})
_WELL = _call("success", started=True)
_UNKNOWN = _call("error", tool="no_tool", started=False)
_DENIED = _call("cancelled", decision="deny", rule="deny bash(make)")
_REFUSED = _call("cancelled", decision="reject")
_AGAIN, _OTHER = _call("pending"), _call("awaiting_approval", command="ls")
_LIMIT = "bash ran into its time limit 3 times in a row"
_SAME = "this very call of bash failed 3 times in a row"


@pytest.mark.parametrize(
    ("before", "now", "why"),
    [
        ([_LATE, _LATER, _LATE], _OTHER, _LIMIT),
        ([_LATE, _LATER], _OTHER, ""),
        ([_LATE, _LATER, _WELL, _LATE], _OTHER, ""),
        ([_LATE, _LATER, _LATE], _call("pending", tool="ls"), ""),
        ([_FAILED] * 3, _AGAIN, _SAME),
        ([_FAILED] * 3, _OTHER, ""),
        ([_FAILED, _FAILED, _WELL, _FAILED], _AGAIN, ""),
        ([_FAILED, _UNKNOWN, _FAILED, _call("success", tool="ls", started=True), _FAILED], _AGAIN, _SAME),
        ([_UNKNOWN] * 4, _call("pending", tool="no_tool"), ""),
        ([_FAILED] * 3, _call("error"), ""),
    ],
)
def test_a_call_waits_for_a_person_after_three_time_outs_of_its_tool_or_three_failures_of_its_own(
    before: list[ToolCallInfo], now: ToolCallInfo, why: str
) -> None:
    assert too_many_failures(_after(*before), [now]) == why


@pytest.mark.parametrize(
    ("calls", "why"),
    [
        (
            [_UNKNOWN] * 5,
            "5 calls of no_tool in a row could not run: it is unknown, or its arguments were unusable",
        ),
        ([_DENIED] * 5, "5 calls of bash in a row could not run: denied by deny bash(make)"),
        ([_UNKNOWN] * 4, ""),
        ([_UNKNOWN, _UNKNOWN, _DENIED, _UNKNOWN, _UNKNOWN, _UNKNOWN], ""),
        ([_UNKNOWN, _UNKNOWN, _UNKNOWN, _WELL, _UNKNOWN, _UNKNOWN], ""),
        ([_REFUSED, _WELL, _REFUSED, _UNKNOWN, _REFUSED], "the same call was refused 3 times"),
        ([_REFUSED, _REFUSED, _call("cancelled", decision="reject", command="other")], ""),
        ([_FAILED] * 9, ""),
    ],
)
def test_the_model_is_not_asked_again_after_five_calls_that_could_not_run_or_three_refusals(
    calls: list[ToolCallInfo], why: str
) -> None:
    assert too_many_refusals(_after(*calls)) == why


def test_a_turn_in_which_all_goes_well_counts_nothing() -> None:
    assert _after(_WELL, _WELL) == {}


def test_calls_of_one_message_count_one_by_one() -> None:
    assert too_many_failures(count_failures({}, [_LATE, _LATER, _LATE]), [_AGAIN]) == _LIMIT
