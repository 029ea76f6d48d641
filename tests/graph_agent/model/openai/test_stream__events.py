import json
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph_agent.model.openai.errors import NotAnApi
from graph_agent.model.openai.stream import payloads_of

ONE, TWO = '{"a": "é😀"}', '{"b": 2}'
PRETTY = json.dumps({"a": {"b": [1]}}, indent=1)


async def taken(body: str | bytes, *, kind: str = "", size: int = 1) -> list[str]:
    data = body if isinstance(body, bytes) else body.encode()

    async def blocks() -> AsyncIterator[bytes]:
        for start in range(0, len(data), size):
            yield data[start : start + size]

    return [payload async for payload in payloads_of(blocks(), kind)]


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
async def test_a_body_is_taken_apart_by_what_it_holds_and_not_by_what_it_is_called(
    body: str, payloads: list[str], kind: str
) -> None:
    assert await taken(body, kind=kind) == payloads


async def test_a_body_of_nothing_is_one_only_where_it_is_called_json() -> None:
    assert [await taken("", kind=kind) for kind in ("application/json", "text/event-stream")] == [[""], []]


async def test_words_that_are_called_a_page_are_one() -> None:
    with pytest.raises(NotAnApi, match="web page"):
        await taken("Please log in", kind="text/html")


@pytest.mark.parametrize("page", ["<!DOCTYPE html><html></html>", "\n <html>", "\ufeff<html>", "<?xml?>"])
async def test_a_web_page_is_told_as_one_whatever_it_is_called(page: str) -> None:
    for kind in ("text/event-stream", "application/json"):
        with pytest.raises(NotAnApi, match="web page"):
            await taken(page, kind=kind)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 30), st.sampled_from(["\n\n", "\r\n\r\n", "\r\r", "\n"]))
async def test_where_the_network_cuts_changes_nothing(size: int, end: str) -> None:
    body = f"data: {ONE}{end}: ping{end}data: {TWO}{end}data: [DONE]{end}"

    assert await taken(body, size=size) == [ONE, TWO, "[DONE]"]
