from graph_agent.calls import ToolCallInfo
from graph_agent.graph.usage import spent_by


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

    assert spent_by(calls, {}) == {"total_tokens": 5, "requests": 3}
    assert spent_by([], {}) == {}
