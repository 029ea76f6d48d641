from langchain_core.messages import AIMessage, HumanMessage

from graph_agent.model.openai.prompted_tools import corrected, in_all
from graph_agent.ports import ModelRequest

TOOLS = [{"type": "function", "function": {"name": "ls"}}]
REQUEST = ModelRequest([HumanMessage("look")], TOOLS)
WRITTEN = AIMessage('<tool_call>{"name": "LS", "arguments": {}}</tool_call>')


def test_a_call_as_text_is_answered_with_what_is_wrong_with_it_twice_and_then_the_user_is_warned() -> None:
    first, last = corrected(REQUEST, WRITTEN, 0), corrected(REQUEST, WRITTEN, 2)

    assert first is not None
    assert first.request is not None
    kinds = [(message.type, message.text[:40]) for message in first.request.messages]
    assert kinds == [
        ("human", "look"),
        ("ai", WRITTEN.text[:40]),
        ("human", "No tool was called: your reply holds the"),
    ]
    assert first.words.endswith("it is told so (1 of 2).")
    assert last is not None
    assert last.request is None
    assert "nothing of it has run" in last.words


def test_an_answer_is_left_alone() -> None:
    called = AIMessage(WRITTEN.text, tool_calls=[{"name": "ls", "args": {}, "id": "c"}])
    unknown = AIMessage('<tool_call>{"name": "rm"}</tool_call>')

    assert [corrected(REQUEST, reply, 0) for reply in (AIMessage("hi"), called, unknown)] == [None] * 3
    assert corrected(ModelRequest(REQUEST.messages, []), WRITTEN, 0) is None


def test_what_replaced_replies_have_used_is_counted() -> None:
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    told = AIMessage("a", usage_metadata=usage)

    assert in_all(told, told).usage_metadata == {"input_tokens": 2, "output_tokens": 4, "total_tokens": 6}
    assert in_all(told, AIMessage("b")).usage_metadata == usage
    assert in_all(AIMessage("a"), AIMessage("b")) == AIMessage("a")
    assert in_all(told, None) is told


def test_a_written_call_whose_name_cannot_be_read_was_meant_as_one_too() -> None:
    correction = corrected(REQUEST, AIMessage('<tool_call>{"name": 5, "arguments": {}}</tool_call>'), 0)

    assert correction is not None
    assert "the call of a tool without a name as text" in correction.words


def test_what_cannot_be_read_as_a_call_is_one_outside_of_code_only() -> None:
    broken = "<tool_call>\n{'name': 'ls'}\n</tool_call>"

    told, shown = (corrected(REQUEST, AIMessage(text), 0) for text in (broken, f"So:\n```\n{broken}\n```"))

    assert (told is not None, shown) == (True, None)
