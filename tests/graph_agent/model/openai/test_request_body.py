import json
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from graph_agent.model.openai.capabilities import Capabilities
from graph_agent.model.openai.client import MessageEncoder, encode_json


class Converting:
    """Counts what it converts."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, messages: Sequence[BaseMessage], dialect: Capabilities) -> list[dict[str, Any]]:
        self.count += len(messages)
        return [
            {"role": message.type, "content": message.content, "null": dialect.null_content} for message in messages
        ]


def test_a_request_costs_what_is_new_in_it_however_long_the_history_is() -> None:
    convert = Converting()
    messages = MessageEncoder(convert)
    history: list[BaseMessage] = []
    counts = []

    for step in range(200):
        history += [AIMessage(f"reply {step}"), HumanMessage(f"text {step}")]
        before = convert.count
        sent = messages.encode(history, Capabilities())
        counts.append(convert.count - before)

    assert set(counts) == {2}
    assert [one["content"] for one in json.loads(sent)] == [message.content for message in history]


def test_a_message_that_replaces_another_with_its_id_is_sent() -> None:
    messages = MessageEncoder(Converting())
    messages.encode([HumanMessage("long", id="m1")], Capabilities())

    sent = messages.encode([HumanMessage("short", id="m1")], Capabilities())

    assert [one["content"] for one in json.loads(sent)] == ["short"]


def test_a_history_is_written_anew_for_an_endpoint_that_takes_it_in_another_form() -> None:
    messages = MessageEncoder(Converting())
    history = [HumanMessage("hi")]

    sent = [
        json.loads(messages.encode(history, Capabilities(null_content=takes)))[0]["null"]
        for takes in (True, False, True)
    ]

    assert sent == [True, False, True]


def test_the_requests_of_a_sub_agent_in_between_cost_the_conversation_nothing() -> None:
    convert = Converting()
    messages = MessageEncoder(convert)
    history = [HumanMessage(f"text {number}") for number in range(50)]
    messages.encode(history, Capabilities())

    for number in range(3):
        messages.encode([HumanMessage(f"other {number}")], Capabilities())
    messages.encode(history, Capabilities())

    assert convert.count == 50 + 3


def test_old_messages_are_dropped_and_images_never_kept() -> None:
    convert = Converting()
    messages = MessageEncoder(convert)
    old, seen = HumanMessage("old"), HumanMessage([{"type": "image_url", "image_url": {"url": "data:"}}])
    messages.encode([old, seen], Capabilities())

    for number in range(20):
        messages.encode([HumanMessage(f"text {number}")], Capabilities())
    messages.encode([old], Capabilities())
    messages.encode([seen], Capabilities())
    messages.encode([seen], Capabilities())

    assert convert.count == 2 + 20 + 1 + 2


def test_the_same_message_may_stand_twice_in_a_history() -> None:
    message = HumanMessage("hi")

    sent = MessageEncoder(Converting()).encode([message, message], Capabilities())

    assert [one["content"] for one in json.loads(sent)] == ["hi", "hi"]


def test_surrogates_are_joined_or_replaced_in_a_request() -> None:
    assert encode_json({"a": ["\ud83d\ude00", "\ud800"]}) == '{"a":["😀","\ufffd"]}'.encode()
