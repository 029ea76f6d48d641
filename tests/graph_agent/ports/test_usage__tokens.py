import base64
import hashlib

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from graph_agent.ports.usage import (
    EstimateCache,
    estimate_message_tokens,
    estimate_request_tokens,
    estimate_tokens,
)

BYTES = b"".join(hashlib.sha256(bytes([number])).digest() for number in range(30))
CODE = (
    "def keep(self, path: str, limit: int = 200) -> list[str]:\n    return sorted(self._seen[path])[:limit]\n" * 10
)
PROSE = "The quick brown fox jumps over the lazy dog, and nobody in the village ever found out why it did. " * 10
CHINESE = "图代理是一个可以随时终止的终端编码助手。它把每一次工具调用都记录在数据库里。" * 10


@pytest.mark.parametrize(
    ("text", "tokens_by_table"),
    [
        (PROSE, 221),
        (CODE, 300),
        (CHINESE, 390),
        (base64.b64encode(BYTES).decode(), 931),
        (BYTES.hex(), 1_080),
    ],
    ids=["prose", "code", "chinese", "base64", "hex"],
)
def test_an_estimate_stays_near_the_count_of_a_real_table(text: str, tokens_by_table: int) -> None:
    assert 0.8 <= estimate_tokens(text) / tokens_by_table <= 1.4


@pytest.mark.parametrize("text", ["a", " ", "\n", ".", "é", "好", "🎉", "\ud800", "\x00"])
def test_no_text_is_free_but_the_empty_one(text: str) -> None:
    assert (estimate_tokens(""), estimate_tokens(text) >= 1) == (0, True)


def test_a_message_costs_its_text_its_calls_and_its_frame() -> None:
    call = {"name": "read_file", "args": {"path": "a.txt"}, "id": "c1"}
    spoken, calling = AIMessage("I look."), AIMessage("I look.", tool_calls=[call])

    assert estimate_tokens("I look.") < estimate_message_tokens(spoken) < estimate_message_tokens(calling)


def test_a_picture_in_a_message_is_not_free() -> None:
    blocks: list[str | dict[str, object]] = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]

    assert estimate_message_tokens(HumanMessage(blocks)) > 1_000


def test_a_request_costs_the_sum_of_its_messages_and_declarations() -> None:
    messages = [HumanMessage("Look."), ToolMessage("found", tool_call_id="c1")]
    tool = {"type": "function", "function": {"name": "grep", "parameters": {"type": "object"}}}

    assert estimate_request_tokens(messages, [tool]) == (
        sum(map(estimate_message_tokens, messages)) + EstimateCache().declarations_tokens([tool])
    )


def test_a_declaration_is_weighed_once_for_as_long_as_it_is_the_same_one() -> None:
    known, tool = EstimateCache(), {"function": {"name": "ls", "description": "lists"}}
    once = known.declarations_tokens([tool])

    tool["function"]["description"] = "lists " * 100

    assert known.declarations_tokens([tool]) == once
    assert known.declarations_tokens([dict(tool)]) == EstimateCache().declarations_tokens([tool]) > once
