import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from graph_agent.model.openai.errors import BrokenReply, EmptyReply, ServerError, StalledReply, UnknownProtocol
from graph_agent.model.openai.stream import (
    DONE,
    ReplyStream,
    iter_payloads,
    raise_if_stalled,
    truncation_cause,
)
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


def test_of_several_finish_reasons_truncation_wins() -> None:
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
def test_unexpected_fields_of_a_chunk_are_ignored(odd: dict[str, Any]) -> None:
    message, _ = arrived(json.dumps(odd), chunk({"content": "hello"}, "stop"))

    assert message.text == "hello"


@pytest.mark.parametrize(
    ("finish", "notes"),
    [
        ("stop", []),
        ("length", ["The reply was cut off by the model's output limit; the text above is incomplete."]),
        (
            "content_filter",
            ["The reply was cut off by the provider's content filter; the text above is incomplete."],
        ),
    ],
)
def test_a_truncated_text_is_noted(finish: str, notes: list[str]) -> None:
    _, shown = arrived(chunk({"content": "half"}, finish))

    assert [delta.text for delta in shown if delta.kind == "note"] == notes


def test_the_last_usage_counts_and_cached_tokens_are_kept() -> None:
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
def test_a_payload_that_is_no_json_object_is_a_broken_reply(payload: str) -> None:
    with pytest.raises(BrokenReply):
        arrived(payload)


def test_an_error_object_ends_the_reply() -> None:
    with pytest.raises(ServerError, match="overloaded"):
        arrived(chunk({"content": "x"}), '{"error": "overloaded"}')


def test_neither_text_nor_calls_is_an_empty_reply_and_no_end_is_a_broken_one() -> None:
    with pytest.raises(EmptyReply, match="finish reason: stop"):
        arrived(chunk({"content": ""}, "stop"))
    with pytest.raises(BrokenReply, match="closed in the middle"):
        arrived(chunk({"content": "x"}))


ONE, TWO = '{"a": "é😀"}', '{"b": 2}'
PRETTY = json.dumps({"a": {"b": [1]}}, indent=1)


async def taken(body: str | bytes, *, kind: str = "", size: int = 1) -> list[str]:
    data = body if isinstance(body, bytes) else body.encode()

    async def blocks() -> AsyncIterator[bytes]:
        for start in range(0, len(data), size):
            yield data[start : start + size]

    return [payload async for payload in iter_payloads(blocks(), kind)]


@pytest.mark.parametrize("kind", ["text/event-stream", "application/json", "text/html; charset=utf-8", ""])
@pytest.mark.parametrize(
    ("body", "payloads"),
    [
        (f"data: {ONE}\n\ndata: {TWO}\n\ndata: [DONE]\n\n", [ONE, TWO, "[DONE]"]),
        (f"data: {ONE}\r\n\r\ndata:{TWO}\r\n\r\n", [ONE, TWO]),
        (f"\ufeffdata: {ONE}\n\n", [ONE]),
        (f": hello\n\nevent: x\nid: 1\nretry: 2\ndata: {ONE}\n\n: ping\n\n", [ONE]),
        (f"\n\ndata: {ONE}\ndata: {TWO}\n", [ONE, TWO]),
        ('data: {"a":\ndata:  {"b": 1}\ndata: }\n\ndata: [DONE]\n', ['{"a":\n{"b": 1}\n}', "[DONE]"]),
        (f'data: {ONE}\n{{"error": "x"}}\n\n', [ONE, '{"error": "x"}']),
        ("data: {cut\n\ndata: [DONE]\n\n", ["{cut", "[DONE]"]),
        ("data: {cut", ["{cut"]),
        (ONE, [ONE]),
        (PRETTY, [PRETTY]),
        (f"{ONE}\n{TWO}\n", [ONE, TWO]),
        (f"{ONE}\n\ndata: {TWO}\n\n", [ONE, TWO]),
        (f"[{ONE}]", [f"[{ONE}]"]),
    ],
)
async def test_a_body_is_split_by_its_content_not_by_its_type(body: str, payloads: list[str], kind: str) -> None:
    assert await taken(body, kind=kind) == payloads


async def test_a_body_of_nothing_is_one_only_where_it_is_called_json() -> None:
    assert [await taken("", kind=kind) for kind in ("application/json", "text/event-stream")] == [[""], []]


async def test_words_that_are_called_a_page_are_one() -> None:
    with pytest.raises(UnknownProtocol, match="web page"):
        await taken("Please log in", kind="text/html")


@pytest.mark.parametrize("page", ["<!DOCTYPE html><html></html>", "\n <html>", "\ufeff<html>", "<?xml?>"])
async def test_a_web_page_is_recognised_whatever_its_content_type(page: str) -> None:
    for kind in ("text/event-stream", "application/json"):
        with pytest.raises(UnknownProtocol, match="web page"):
            await taken(page, kind=kind)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 30), st.sampled_from(["\n\n", "\r\n\r\n", "\r\r", "\n"]))
async def test_where_the_network_cuts_changes_nothing(size: int, end: str) -> None:
    body = f"data: {ONE}{end}: ping{end}data: {TWO}{end}data: [DONE]{end}"

    assert await taken(body, size=size) == [ONE, TWO, "[DONE]"]


LIMIT, FILTER = "the model's output limit", "the provider's content filter"


@pytest.mark.parametrize(
    ("reason", "limit"),
    [
        ("length", LIMIT),
        ("MAX_TOKENS", LIMIT),
        ("max_output_tokens", LIMIT),
        ("model_context_window_exceeded", LIMIT),
        ("content_filter", FILTER),
        ("contentFiltered", FILTER),
        ("SAFETY", FILTER),
        ("sensitive", FILTER),
        ("stop", ""),
        ("tool_calls", ""),
        ("eos", ""),
        ("", ""),
    ],
)
def test_a_finish_reason_gives_the_cause_of_truncation(reason: str, limit: str) -> None:
    assert truncation_cause(reason) == limit


@pytest.mark.parametrize("reason", ["error", "abort", "insufficient_system_resource", "Network_error "])
def test_a_server_that_gave_up_has_sent_a_broken_reply(reason: str) -> None:
    with pytest.raises(BrokenReply, match=f"finish reason: {reason}"):
        arrived(chunk({"content": "half"}, reason))


LIMIT_S = 0.3


async def heard(*blocks: str, times: int) -> int:
    """How many of the blocks, repeated so often at a fifth of the limit, come through."""

    async def paced() -> AsyncGenerator[bytes, None]:
        for number in range(times):
            await asyncio.sleep(LIMIT_S / 5)
            yield blocks[min(number, len(blocks) - 1)].encode()

    return len([block async for block in raise_if_stalled(paced(), LIMIT_S)])


@pytest.mark.parametrize(
    "blocks",
    [
        (": ping\n\n",),
        (":", " pi", "ng\n\n", ": ", "a"),
        ("\r\n",),
        ('data: {"a": 1}\n\n', "event: ping\ndata:\n\n"),
        ('data: {"a', "a"),
    ],
)
async def test_signs_of_life_without_end_are_no_answer(blocks: tuple[str, ...]) -> None:
    with pytest.raises(StalledReply, match=r"^0\.3 s$"):
        await heard(*blocks, times=50)


@pytest.mark.parametrize(
    "blocks",
    [(": ping\n\ndata: 1\n\n",), ('{"a": "', "a"), ("\n", "\ufeff[", ": "), ("d", "ata: 1\n", "data: 1\n")],
)
async def test_an_answer_may_take_its_time(blocks: tuple[str, ...]) -> None:
    assert await heard(*blocks, times=9) == 9
