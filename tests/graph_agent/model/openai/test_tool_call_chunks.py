import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_agent.model.openai.tool_call_chunks import (
    Arguments,
    ToolCallAssembler,
    parse_arguments,
    replace_surrogates,
)

Parts = tuple[str, str, str]


def fragment(index: Any = None, call_id: Any = None, name: Any = None, arguments: Any = None) -> dict[str, Any]:
    return {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}


def put_together(fragments: list[Any]) -> list[Parts]:
    arriving = ToolCallAssembler()
    for each in fragments:
        arriving.add(each)
    return [(call.call_id, call.name, call.joined_arguments) for call in arriving.calls]


@pytest.mark.parametrize(
    ("fragments", "calls"),
    [
        pytest.param(
            [fragment(0, "c1", "read", ""), fragment(0, None, None, '{"a":'), fragment(0, None, None, "1}")],
            [("c1", "read", '{"a":1}')],
            id="as documented",
        ),
        pytest.param(
            [fragment(None, "0", "read", ""), fragment(None, "0", None, '{"a":'), fragment(None, "0", None, "1}")],
            [("0", "read", '{"a":1}')],
            id="index null, id repeated",
        ),
        pytest.param(
            [fragment(0, "c1", "read", "{}"), fragment(0, "c2", "read", "{}")],
            [("c1", "read", "{}"), ("c2", "read", "{}")],
            id="index repeated, ids differ",
        ),
        pytest.param(
            [fragment(0, "x", "read", '{"a"'), fragment(0, "y", None, ":1}")],
            [("x", "read", '{"a":1}')],
            id="a new id in each fragment",
        ),
        pytest.param(
            [fragment(None, None, "ls", "{}"), fragment(None, None, "ls", '{"a":1}')],
            [("", "ls", "{}"), ("", "ls", '{"a":1}')],
            id="neither index nor id",
        ),
        pytest.param(
            [fragment(None, "0", "ls", "{}"), fragment(None, "0", "ls", "{}")],
            [("0", "ls", "{}"), ("0", "ls", "{}")],
            id="id reused for another call",
        ),
        pytest.param(
            [fragment(0, "c1", "ls", '{"a":'), fragment(0, None, "ls", "1}"), fragment(0, None, "ls", "")],
            [("c1", "ls", '{"a":1}')],
            id="name repeated",
        ),
        pytest.param(
            [fragment(0, "c1", "read", ""), fragment(0, None, "_file", ""), fragment(0, None, None, "{}")],
            [("c1", "read_file", "{}")],
            id="name in pieces",
        ),
        pytest.param(
            [fragment(None, "c1", "read", ""), fragment(None, "c1", "_file", ""), fragment(None, "c1", None, "{}")],
            [("c1", "read_file", "{}")],
            id="name in pieces, each with the id",
        ),
        pytest.param(
            [fragment(0, "c1", "read", ""), fragment(0, None, "read_file", "{}")],
            [("c1", "read_file", "{}")],
            id="name that grows",
        ),
        pytest.param(
            [{"index": 0, "id": "c1", "name": "ls", "arguments": "{}"}],
            [("c1", "ls", "{}")],
            id="nothing called a function",
        ),
        pytest.param(
            [
                fragment(0, "c1", "a", ""),
                fragment(1, "c2", "b", ""),
                fragment(0, None, None, '{"x"'),
                fragment(1, None, None, "{}"),
                fragment(0, None, None, ":1}"),
            ],
            [("c1", "a", '{"x":1}'), ("c2", "b", "{}")],
            id="interleaved",
        ),
        pytest.param(
            [{"function": {"name": "a", "arguments": "{}"}}, {"function": {"name": "b", "arguments": {"x": 1}}}],
            [("", "a", "{}"), ("", "b", '{"x": 1}')],
            id="keys missing, arguments an object",
        ),
        pytest.param([None, "x", {}, {"function": None}, {"function": "x"}], [], id="nothing in it"),
    ],
)
def test_fragments_go_to_the_call_they_belong_to(fragments: list[Any], calls: list[Parts]) -> None:
    assert put_together(fragments) == calls


def test_equal_calls_keep_positions_of_their_own() -> None:
    arriving = ToolCallAssembler()

    positions = [arriving.add(fragment(index, None, "ls", "{}")) for index in (0, 1)]

    assert positions == [(0, "ls", "{}"), (1, "ls", "{}")]


def test_each_call_of_an_unstreamed_reply_is_its_own_even_without_ids() -> None:
    arriving = ToolCallAssembler()

    for _ in range(2):
        arriving.add({"function": {"name": "ls", "arguments": "{}"}}, is_whole=True)

    assert [(call.call_id, call.name, call.joined_arguments) for call in arriving.calls] == [("", "ls", "{}")] * 2


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ('{"path": "a.txt"}', {"path": "a.txt"}),
        ({"path": "a.txt"}, {"path": "a.txt"}),
        ('"{\\"path\\": \\"a.txt\\"}"', {"path": "a.txt"}),
        ("", {}),
        ("  \n", {}),
        (None, {}),
        ("null", {}),
        ('""', {}),
        ('{"text": "two\nlines"}', {"text": "two\nlines"}),
        ('{"text": "\\ud83d\\ude00 \\ud800"}', {"text": "😀 \ufffd"}),
        ('{"n": [1, 2.5, true, null]}', {"n": [1, 2.5, True, None]}),
        ('{}{"a": 1}', {"a": 1}),
        ('{"a": 1} {"a": 1}\n', {"a": 1}),
        ('```json\n{"a": 1}\n```\n', {"a": 1}),
    ],
)
def test_arguments_are_read_in_every_shape_they_arrive_in(raw: Any, value: dict[str, Any]) -> None:
    assert parse_arguments(raw) == Arguments(value)


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        ('{"path": "a.', "not valid JSON"),
        ('{"a": 1}{"b": 2}', "not valid JSON"),
        ('{"a": NaN}', "NaN is not JSON"),
        ("[1]", "a list, not a JSON object"),
        ("7", "a number, not a JSON object"),
        ("true", "true or false, not a JSON object"),
        ('{"a": 1e999}', "a number is too large"),
        ('{"a": 99999999999999999999}', "does not fit into 64 bits"),
        ("[" * 100_000, "not valid JSON"),
        (json.dumps(json.dumps(json.dumps(json.dumps({})))), "a string within strings"),
    ],
)
def test_unusable_arguments_are_empty_with_the_reason_in_words(raw: str, error: str) -> None:
    arguments = parse_arguments(raw)

    assert arguments.value == {}
    assert error in arguments.error


@given(st.one_of(st.text(), st.recursive(st.none() | st.floats() | st.text() | st.integers(), st.lists)))
def test_whatever_arrives_the_value_can_be_sent_back(raw: Any) -> None:
    value = parse_arguments(raw).value

    assert json.loads(json.dumps(value, allow_nan=False, ensure_ascii=False).encode()) == value


def test_surrogate_halves_are_joined_or_replaced() -> None:
    assert replace_surrogates("a\ud83d" + "\ude00b\ud800é") == "a😀b\ufffdé"
