import json
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI

from graph_agent.config.settings import ModelSettings
from graph_agent.model.openai.capabilities import Capabilities
from graph_agent.model.openai.request_body import (
    MessageEncoder,
    PlainMessage,
    RequestEncoder,
    encode_json,
    encode_request,
)

LOCAL = ModelSettings(base_url="http://localhost:1/v1")
CALL = {"name": "ls", "args": {"path": "ä"}, "id": "c1", "type": "tool_call"}
BROKEN = {"name": "ls", "args": "{", "id": "c2", "error": None, "type": "invalid_tool_call"}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
TOOLS = [{"type": "function", "function": {"name": "ls", "description": "", "parameters": {}}}]


def test_a_body_has_only_supported_fields() -> None:
    call = {"name": "ls", "args": {"path": "a\ud800"}, "id": "c1"}
    called = [HumanMessage("hi"), AIMessage("", tool_calls=[call]), ToolMessage("out", tool_call_id="c1")]

    body = RequestEncoder(LOCAL, "m").body(called, [], Capabilities(streaming=False, null_content=False))

    function = {"name": "ls", "arguments": '{"path": "a\ufffd"}'}
    sent = {"type": "function", "id": "c1", "function": function}
    assert json.loads(body) == {
        "model": "m",
        "stream": False,
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "", "tool_calls": [sent]},
            {"role": "tool", "tool_call_id": "c1", "content": "out"},
        ],
    }


@pytest.mark.parametrize(
    "message",
    [
        SystemMessage("be brief"),
        SystemMessage("be brief", additional_kwargs={"__openai_role__": "developer"}),
        HumanMessage("hi"),
        HumanMessage("hi", name="ann"),
        HumanMessage([{"type": "text", "text": "look"}, IMAGE]),
        HumanMessage([{"type": "image", "base64": "AA==", "mime_type": "image/png"}]),
        HumanMessage([{"type": "file", "base64": "AA==", "mime_type": "application/pdf", "filename": "a.pdf"}]),
        AIMessage("answer"),
        AIMessage("", tool_calls=[CALL]),
        AIMessage("text beside", tool_calls=[CALL], invalid_tool_calls=[BROKEN]),
        AIMessage([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "answer"}]),
        ToolMessage("out", tool_call_id="c1", name="ls"),
        ToolMessage([{"type": "text", "text": "out"}, IMAGE], tool_call_id="c1"),
    ],
    ids=lambda message: f"{message.type} {str(message.content)[:20]}",
)
@pytest.mark.parametrize("name", ["gpt-5", "o3-mini"])
def test_a_request_is_what_the_library_makes_of_it(message: BaseMessage, name: str) -> None:
    library = ChatOpenAI(model=name, api_key="none", stream_usage=False, use_responses_api=False)  # type: ignore[arg-type]  # a plain key is accepted

    made = json.loads(RequestEncoder(LOCAL, name).body([message], TOOLS, Capabilities()))

    options: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}, "tools": TOOLS}
    assert made == library._get_request_payload([message], **options)


def test_settings_add_to_the_body_and_may_replace_the_messages() -> None:
    added = ModelSettings(base_url="http://localhost:1/v1", effort="high", extra_body={"seed": 1, "model": "other"})
    replaced = ModelSettings(base_url="http://localhost:1/v1", extra_body={"messages": []})

    bodies = [
        json.loads(RequestEncoder(one, "m").body([HumanMessage("hi")], [], Capabilities(stream_usage=False)))
        for one in (added, replaced)
    ]

    fields = {"stream": True, "messages": [{"role": "user", "content": "hi"}]}
    assert bodies == [
        {**fields, "model": "other", "reasoning_effort": "high", "seed": 1},
        {"model": "m", "stream": True, "messages": []},
    ]


def test_a_text_gives_the_same_bytes_before_and_after_the_library_is_loaded() -> None:
    encoder = RequestEncoder(LOCAL, "o1")
    text = 'line\nquote " \\ 😀 中文 \x00 \u2028  '

    early, late = (
        encoder.body(messages, TOOLS, Capabilities())
        for messages in (
            [PlainMessage("system", text), PlainMessage("human", text)],
            [SystemMessage(text), HumanMessage(text, id="inbox-1")],
        )
    )

    assert early == late


def test_an_answer_depends_on_address_key_and_headers_of_the_settings() -> None:
    settings = ModelSettings.model_validate(
        {"base_url": "http://localhost:1/v1", "api_key": "k", "headers": {"X-Team": "a"}}
    )

    assert encode_request(settings, b"{}") == (
        "http://localhost:1/v1/chat/completions",
        {"Authorization": "Bearer k", "Content-Type": "application/json", "X-Team": "a"},
        b"{}",
    )


class Convert:
    """Counts what it converts."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(
        self, messages: Sequence[BaseMessage | PlainMessage], capabilities: Capabilities
    ) -> list[dict[str, Any]]:
        self.count += len(messages)
        return [
            {"role": message.type, "content": message.content, "null": capabilities.null_content}
            for message in messages
        ]


def test_a_request_costs_what_is_new_in_it_however_long_the_history_is() -> None:
    convert = Convert()
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


def test_a_message_is_known_by_its_object_and_encoded_anew_for_other_capabilities() -> None:
    messages, first, second = (
        MessageEncoder(Convert()),
        HumanMessage("long", id="m1"),
        HumanMessage("short", id="m1"),
    )

    sent = [
        json.loads(messages.encode(history, Capabilities(null_content=takes_null)))
        for history, takes_null in (([first], True), ([second], True), ([first, first], False), ([first], True))
    ]

    assert [[(one["content"], one["null"]) for one in each] for each in sent] == [
        [("long", True)],
        [("short", True)],
        [("long", False)] * 2,
        [("long", True)],
    ]


def test_the_requests_of_a_sub_agent_in_between_cost_the_conversation_nothing() -> None:
    convert = Convert()
    messages = MessageEncoder(convert)
    history = [HumanMessage(f"text {number}") for number in range(50)]
    messages.encode(history, Capabilities())

    for number in range(3):
        messages.encode([HumanMessage(f"other {number}")], Capabilities())
    messages.encode(history, Capabilities())

    assert convert.count == 50 + 3


def test_old_messages_are_dropped_and_images_never_kept() -> None:
    convert = Convert()
    messages = MessageEncoder(convert)
    old, seen = HumanMessage("old"), HumanMessage([{"type": "image_url", "image_url": {"url": "data:"}}])
    messages.encode([old, seen], Capabilities())

    for number in range(20):
        messages.encode([HumanMessage(f"text {number}")], Capabilities())
    messages.encode([old], Capabilities())
    messages.encode([seen], Capabilities())
    messages.encode([seen], Capabilities())

    assert convert.count == 2 + 20 + 1 + 2


def test_surrogates_are_joined_or_replaced_in_a_request() -> None:
    assert encode_json({"a": ["\ud83d\ude00", "\ud800"]}) == '{"a":["😀","\ufffd"]}'.encode()
