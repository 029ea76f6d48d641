import json
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph_agent.model.events import payloads_of
from graph_agent.model.failures import NotAnApi

ONE, TWO = '{"a": "é😀"}', '{"b": 2}'
PRETTY = json.dumps({"a": {"b": [1]}}, indent=1)


async def taken(body: str | bytes, *, is_json: bool = False, size: int = 1) -> list[str]:
    data = body if isinstance(body, bytes) else body.encode()

    async def blocks() -> AsyncIterator[bytes]:
        for start in range(0, len(data), size):
            yield data[start : start + size]

    return [payload async for payload in payloads_of(blocks(), is_json=is_json)]


@pytest.mark.parametrize("is_json", [False, True])
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
        ("", [""]),
    ],
)
async def test_a_body_is_taken_apart_by_what_it_holds_and_not_by_what_it_is_called(
    body: str, payloads: list[str], is_json: bool
) -> None:
    expected = [] if not body and not is_json else payloads

    assert await taken(body, is_json=is_json) == expected


@pytest.mark.parametrize("page", ["<!DOCTYPE html><html></html>", "\n <html>", "\ufeff<html>", "<?xml?>"])
async def test_a_web_page_is_told_as_one_whatever_it_is_called(page: str) -> None:
    for is_json in (False, True):
        with pytest.raises(NotAnApi, match="web page"):
            await taken(page, is_json=is_json)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 30), st.sampled_from(["\n\n", "\r\n\r\n", "\r\r", "\n"]))
async def test_where_the_network_cuts_changes_nothing(size: int, end: str) -> None:
    body = f"data: {ONE}{end}: ping{end}data: {TWO}{end}data: [DONE]{end}"

    assert await taken(body, size=size) == [ONE, TWO, "[DONE]"]
