from graph_agent.calls import STATUSES, ToolCallInfo, completed_tool_calls, pending_tool_calls


def test_every_call_is_in_exactly_one_of_the_two_views() -> None:
    calls: dict[str, ToolCallInfo] = {
        status: {
            "call_id": status,
            "tool_name": "ls",
            "arguments": {},
            "status": status,
            "result": None,
            "error_msg": None,
        }
        for status in STATUSES
    }

    views = (
        [call["call_id"] for call in pending_tool_calls(calls)],
        [call["call_id"] for call in completed_tool_calls(calls)],
    )

    assert views == (
        ["pending", "awaiting_approval", "executing", "interrupted"],
        ["success", "error", "cancelled"],
    )
