from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage

from graph_agent.session.thread_graph import has_no_records, newest_call_ids, open_calls


def _state(records: Mapping[str, str], *asked: str) -> dict[str, Any]:
    calls: list[Any] = [{"id": call_id, "name": "bash", "args": {}} for call_id in asked]
    return {
        "calls": {call_id: {"call_id": call_id, "status": status} for call_id, status in records.items()},
        "messages": [AIMessage("", tool_calls=calls)],
    }


def test_a_call_is_open_until_its_record_is_final_and_from_the_message_on_that_asks_for_it() -> None:
    state = _state({"over": "success", "cut": "interrupted"}, "over", "cut", "new")

    assert open_calls(state) == ["cut", "new"]
    assert open_calls({**state, "messages": [HumanMessage("hi")]}) == ["cut"]
    assert [open_calls({}), newest_call_ids({}), newest_call_ids({"messages": [HumanMessage("hi")]})] == [[]] * 3


def test_a_state_has_no_records_if_neither_open_nor_newest_calls_have_one() -> None:
    evaluated = [
        _state({"new": "success"}, "new"),
        _state({"new": "awaiting_approval"}, "new"),
        _state({"elsewhere": "executing"}, "new"),
    ]

    assert has_no_records({})
    assert has_no_records(_state({"earlier": "success"}, "new"))
    assert not any(map(has_no_records, evaluated))
