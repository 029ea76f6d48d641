import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from graph_agent.model.openai.errors import ReplyError, StalledReply, UnknownProtocol
from graph_agent.model.openai.stream import (
    DONE,
    ReplyStream,
    iter_payloads,
    latest_usage,
    parse_usage,
    raise_if_stalled,
)
from graph_agent.ports import Delta
from tests.graph_agent.model.reply_shapes import ARGUMENTS, ENDINGS, FRAGMENTS, OFFERED, TEXTS, Shape

TOLD = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}


def payloads(shape: Shape) -> list[str]:
    """The shape as it stands on the wire."""
    part, finish = ("message", shape.finish) if shape.whole else ("delta", None)
    sent = []
    for chunk in shape.chunks:
        is_complete = isinstance(chunk, dict) and ("choices" in chunk or "error" in chunk)
        whole = chunk if is_complete else {"choices": [{"index": 0, part: chunk, "finish_reason": finish}]}
        sent.append(chunk if isinstance(chunk, str) else json.dumps(whole))
    if shape.finish and not shape.whole:
        sent.append(json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": shape.finish}]}))
    return [*sent, DONE] if shape.done and not shape.whole else sent


def read(*sent: str) -> tuple[AIMessage, list[Delta]]:
    reply = ReplyStream(OFFERED)
    shown = [delta for payload in sent for delta in reply.add(payload)]
    shown += list(reply.end())
    return reply.message(), shown


def said(content: str, finish: str | None = None) -> str:
    return json.dumps({"choices": [{"delta": {"content": content}, "finish_reason": finish}]})


@pytest.mark.parametrize("shape", [*FRAGMENTS, *ARGUMENTS, *ENDINGS, *TEXTS], ids=lambda shape: shape.name)
def test_every_shape_comes_to_its_calls_its_text_and_the_true_cause(shape: Shape) -> None:
    if shape.fails:
        with pytest.raises(ReplyError) as failure:
            read(*payloads(shape))
        assert type(failure.value).__name__ == shape.fails
        return

    message, shown = read(*payloads(shape))

    ids = tuple(call["id"] for call in message.tool_calls)
    assert tuple((call["name"], call["args"]) for call in message.tool_calls) == shape.calls
    assert (message.text, shape.ids in (None, ids)) == (shape.text, True)
    assert "".join(delta.text for delta in shown if delta.kind == "reasoning") == shape.reasoning
    complaints = message.response_metadata.get("unusable_arguments", {})
    assert {key: part in complaints.get(key, "") for key, part in shape.complaints.items()} == dict.fromkeys(
        complaints, True
    )


@pytest.mark.parametrize(
    ("finish", "cause"),
    [("stop", ""), ("length", "the model's output limit"), ("content_filter", "the provider's content filter")],
)
def test_a_truncated_text_is_noted(finish: str, cause: str) -> None:
    _, shown = read(said("half", finish))

    notes = [delta.text for delta in shown if delta.kind == "note"]
    assert notes == ([f"The reply was cut off by {cause}; the text above is incomplete."] if cause else [])


@pytest.mark.parametrize(
    ("sent", "shown"),
    [("No.", [Delta("text", "No.")]), ("<thi", [Delta("text", "<thi")])],
    ids=["text", "buffered"],
)
def test_text_is_shown_also_where_it_was_buffered_until_the_end(sent: str, shown: list[Delta]) -> None:
    assert read(said(sent, "stop"))[1] == shown


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ((said("", "stop"),), "finish reason: stop"),
        ((said("x"),), "the connection closed in the middle"),
        ((), "it has no choices"),
        ((said("x"), '{"error": "overloaded"}'), "overloaded"),
    ],
    ids=["empty", "no end", "nothing", "an error"],
)
def test_a_reply_that_is_none_says_why(sent: tuple[str, ...], words: str) -> None:
    with pytest.raises(ReplyError, match=words):
        read(*sent)


@pytest.mark.parametrize(
    "counts",
    [
        {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
        {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": None},
        {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 3},
        {"prompt_tokens": 5.0, "completion_tokens": "2"},
        {"input_tokens": 5, "output_tokens": 2},
        {"prompt_tokens": 5, "total_tokens": 7},
        {"completion_tokens": 2, "total_tokens": 7},
    ],
)
def test_the_counts_are_read_under_all_their_names_and_in_all_their_forms(counts: dict[str, Any]) -> None:
    assert parse_usage(counts) == TOLD


@pytest.mark.parametrize(
    "counts",
    [
        None,
        "7",
        {},
        {"total_tokens": 7},
        {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        {"prompt_tokens": 5},
        {"prompt_tokens": -5, "completion_tokens": -2},
        {"prompt_tokens": True, "completion_tokens": 2},
        {"prompt_tokens": 5, "completion_tokens": 10**40},
        {"prompt_tokens": 5, "completion_tokens": float("inf")},
        {"prompt_tokens": "9" * 5_000, "completion_tokens": 1},
        {"prompt_tokens": 5, "completion_tokens": 1.5},
    ],
)
def test_incomplete_counts_are_ignored(counts: Any) -> None:
    assert parse_usage(counts) is None


@pytest.mark.parametrize(
    ("more", "details"),
    [
        (
            {"prompt_tokens_details": {"cached_tokens": 3}, "completion_tokens_details": {"reasoning_tokens": 1}},
            {"input_token_details": {"cache_read": 3}, "output_token_details": {"reasoning": 1}},
        ),
        ({"prompt_cache_hit_tokens": 9, "prompt_tokens_details": None}, {"input_token_details": {"cache_read": 5}}),
        (
            {"prompt_cache_hit_tokens": 4, "prompt_tokens_details": {"cached_tokens": 0}},
            {"input_token_details": {"cache_read": 4}},
        ),
    ],
    ids=["openai", "deepseek", "both"],
)
def test_cached_and_reasoning_tokens_are_read_where_the_server_sends_them(more: Any, details: Any) -> None:
    assert parse_usage({"prompt_tokens": 5, "completion_tokens": 2, **more}) == {**TOLD, **details}


def test_the_newest_usage_counts_wherever_it_is() -> None:
    counts = {"prompt_tokens": 5, "completion_tokens": 2}
    silent = {"usage": {"prompt_tokens": 0, "completion_tokens": 0}, "choices": [{"usage": None}], "x_groq": "x"}
    later = json.dumps({"choices": [], "usage": counts})

    for body in ({"usage": counts}, {"choices": [{"usage": counts}]}, {"x_groq": {"usage": counts}}):
        assert latest_usage(body, None) == TOLD
    assert latest_usage(silent, TOLD) == TOLD  # type: ignore[arg-type] # the three counts are all that is needed
    assert read(said("a", "stop"), later, json.dumps(silent))[0].usage_metadata == TOLD


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


@pytest.mark.parametrize("body", ["[]", "7", '"text"', "true", "[1, 2]"])
async def test_json_that_is_no_object_is_not_asked_for_again(body: str) -> None:
    with pytest.raises(UnknownProtocol, match="JSON, but not an object"):
        list(ReplyStream().add(body))


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


LIMIT_S = 0.1


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
    with pytest.raises(StalledReply, match=r"^0\.1 s$"):
        await heard(*blocks, times=50)


@pytest.mark.parametrize(
    "blocks",
    [(": ping\n\ndata: 1\n\n",), ('{"a": "', "a"), ("\n", "\ufeff[", ": "), ("d", "ata: 1\n", "data: 1\n")],
)
async def test_an_answer_may_take_its_time(blocks: tuple[str, ...]) -> None:
    assert await heard(*blocks, times=9) == 9
