import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from graph_agent.model.openai.errors import BrokenReply, EmptyReply, ServerSaid
from graph_agent.model.openai.stream import DONE, ReplyStream
from graph_agent.ports import Delta


def chunk(delta: dict[str, Any] | None, finish: str | None = None, **more: Any) -> str:
    return json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more})


def arrived(*payloads: str) -> tuple[AIMessage, list[Delta]]:
    arrival = ReplyStream()
    shown = [delta for payload in payloads for delta in arrival.add(payload)]
    shown += list(arrival.end())
    return arrival.message(), shown


def test_surrogate_halves_that_arrive_apart_become_one_character() -> None:
    message, _ = arrived(chunk({"content": "\ud83d"}), chunk({"content": "\ude00"}, "stop"))

    assert message.text == "😀"


def test_of_several_finish_reasons_the_one_that_says_cut_stands() -> None:
    call = {"index": 0, "id": "c", "function": {"name": "ls", "arguments": "{}"}}

    message, _ = arrived(chunk({"tool_calls": [call]}, "length"), chunk({}, "tool_calls"), chunk({}, ""), DONE)

    assert message.response_metadata["finish_reason"] == "length"
    assert list(message.response_metadata["unusable_arguments"]) == ["0"]


@pytest.mark.parametrize(
    "delta",
    [
        {"tool_calls": {"index": 0, "id": "c", "function": {"name": "ls", "arguments": "{}"}}},
        {"function_call": {"name": "ls", "arguments": "{}"}},
    ],
)
def test_a_call_outside_of_a_list_is_one(delta: dict[str, Any]) -> None:
    message, _ = arrived(chunk(delta), chunk({}, "stop"))

    assert [call["name"] for call in message.tool_calls] == ["ls"]


@pytest.mark.parametrize("odd", [{"choices": {"0": 1}}, {"choices": [None]}, {"choices": [{"delta": "x"}]}])
def test_what_has_no_place_in_a_chunk_disturbs_nothing(odd: dict[str, Any]) -> None:
    message, _ = arrived(json.dumps(odd), chunk({"content": "hello"}, "stop"))

    assert message.text == "hello"


@pytest.mark.parametrize(
    ("finish", "notes"),
    [
        ("stop", []),
        ("length", ["The reply was cut off by the model's output limit; what is shown is not all of it."]),
        (
            "content_filter",
            ["The reply was cut off by the provider's content filter; what is shown is not all of it."],
        ),
    ],
)
def test_a_text_that_was_cut_off_is_said_to_be(finish: str, notes: list[str]) -> None:
    _, shown = arrived(chunk({"content": "half"}, finish))

    assert [delta.text for delta in shown if delta.kind == "note"] == notes


def test_the_last_usage_told_counts_and_cached_tokens_are_kept() -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": None}
    message, _ = arrived(
        chunk({"content": "a"}, "stop", usage={"prompt_tokens": 1}),
        json.dumps({"choices": [], "usage": {**usage, "prompt_tokens_details": {"cached_tokens": 5}}}),
        json.dumps({"choices": None, "usage": None}),
    )

    assert message.usage_metadata == {
        "input_tokens": 7,
        "output_tokens": 2,
        "total_tokens": 9,
        "input_token_details": {"cache_read": 5},
    }


def test_blank_text_beside_calls_is_none() -> None:
    call = {"id": "c", "function": {"name": "ls", "arguments": "{}"}}
    whole = {"choices": [{"message": {"content": "\n", "tool_calls": [call]}, "finish_reason": "tool_calls"}]}

    message, _ = arrived(json.dumps(whole))

    assert (message.text, len(message.tool_calls)) == ("", 1)


def test_a_refusal_is_the_text_of_the_reply() -> None:
    message, shown = arrived(chunk(None), chunk({"refusal": "No."}, "stop"))

    assert (message.text, shown) == ("No.", [Delta("text", "No.")])


def test_text_held_back_for_a_tag_is_shown_at_the_end() -> None:
    message, shown = arrived(chunk({"content": "<thi"}, "stop"))

    assert (message.text, shown) == ("<thi", [Delta("text", "<thi")])


@pytest.mark.parametrize("payload", ["{", "[]", '"x"', "1"])
def test_what_is_no_json_object_is_a_broken_reply(payload: str) -> None:
    with pytest.raises(BrokenReply):
        arrived(payload)


def test_an_error_object_ends_the_reply() -> None:
    with pytest.raises(ServerSaid, match="overloaded"):
        arrived(chunk({"content": "x"}), '{"error": "overloaded"}')


def test_neither_text_nor_calls_is_an_empty_reply_and_no_end_is_a_broken_one() -> None:
    with pytest.raises(EmptyReply, match="finish reason: stop"):
        arrived(chunk({"content": ""}, "stop"))
    with pytest.raises(BrokenReply, match="closed in the middle"):
        arrived(chunk({"content": "x"}))
