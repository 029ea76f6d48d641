import json
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from graph_agent.model.openai.capabilities import Capabilities
from graph_agent.model.openai.request_body import EncodedMessages, encoded


class Converting:
    """Counts what it converts."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, messages: Sequence[BaseMessage], dialect: Capabilities) -> list[dict[str, Any]]:
        self.count += len(messages)
        return [
            {"role": message.type, "content": message.content, "null": dialect.takes_null} for message in messages
        ]


def test_a_request_costs_what_is_new_in_it_however_long_the_history_is() -> None:
    convert = Converting()
    messages = EncodedMessages(convert)
    history: list[BaseMessage] = []
    counts = []

    for step in range(200):
        history += [AIMessage(f"reply {step}"), HumanMessage(f"text {step}")]
        before = convert.count
        sent = messages.of(history, Capabilities())
        counts.append(convert.count - before)

    assert set(counts) == {2}
    assert [one["content"] for one in json.loads(sent)] == [message.content for message in history]


def test_a_message_that_takes_the_place_of_another_with_its_id_is_what_is_sent() -> None:
    messages = EncodedMessages(Converting())
    messages.of([HumanMessage("long", id="m1")], Capabilities())

    sent = messages.of([HumanMessage("short", id="m1")], Capabilities())

    assert [one["content"] for one in json.loads(sent)] == ["short"]


def test_a_history_is_written_anew_for_an_endpoint_that_takes_it_in_another_form() -> None:
    messages = EncodedMessages(Converting())
    history = [HumanMessage("hi")]

    sent = [
        json.loads(messages.of(history, Capabilities(takes_null=takes)))[0]["null"] for takes in (True, False, True)
    ]

    assert sent == [True, False, True]


def test_the_requests_of_a_sub_agent_in_between_cost_the_conversation_nothing() -> None:
    convert = Converting()
    messages = EncodedMessages(convert)
    history = [HumanMessage(f"text {number}") for number in range(50)]
    messages.of(history, Capabilities())

    for number in range(3):
        messages.of([HumanMessage(f"other {number}")], Capabilities())
    messages.of(history, Capabilities())

    assert convert.count == 50 + 3


def test_what_is_not_sent_any_more_is_forgotten_and_images_are_never_kept() -> None:
    convert = Converting()
    messages = EncodedMessages(convert)
    old, seen = HumanMessage("old"), HumanMessage([{"type": "image_url", "image_url": {"url": "data:"}}])
    messages.of([old, seen], Capabilities())

    for number in range(20):
        messages.of([HumanMessage(f"text {number}")], Capabilities())
    messages.of([old], Capabilities())
    messages.of([seen], Capabilities())
    messages.of([seen], Capabilities())

    assert convert.count == 2 + 20 + 1 + 2


def test_the_same_message_may_stand_twice_in_a_history() -> None:
    message = HumanMessage("hi")

    sent = EncodedMessages(Converting()).of([message, message], Capabilities())

    assert [one["content"] for one in json.loads(sent)] == ["hi", "hi"]


def test_surrogate_halves_are_joined_or_replaced_in_what_is_sent() -> None:
    assert encoded({"a": ["\ud83d\ude00", "\ud800"]}) == '{"a":["😀","\ufffd"]}'.encode()
