from graph_agent.calls import ToolCallInfo
from graph_agent.graph.limits import usage_of_calls


def _call(usage: object) -> ToolCallInfo:
    return {
        "call_id": "c",
        "tool_name": "new_task",
        "arguments": {},
        "status": "success",
        "result": "",
        "error_msg": None,
        "metadata": {"usage": usage},
    }


def test_what_calls_spent_is_added_up_and_anything_else_there_is_passed_over() -> None:
    calls = [_call({"total_tokens": 5, "requests": 2}), _call("much"), _call({"requests": 1, "cost": "high"})]

    assert usage_of_calls(calls, {}) == {"total_tokens": 5, "requests": 3}
    assert usage_of_calls([], {}) == {}


def test_of_the_turn_counts_what_a_call_used_since_a_person_let_it_go_on() -> None:
    usage, of_turn = {"total_tokens": 5, "requests": 3}, {"total_tokens": 2, "requests": 1}
    call = _call(usage)
    call["metadata"]["turn_usage"] = of_turn

    assert (usage_of_calls([call], {}, of_turn=True), usage_of_calls([call], {})) == (of_turn, usage)
