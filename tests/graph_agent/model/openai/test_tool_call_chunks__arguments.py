import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_agent.model.openai.tool_call_chunks import Arguments, read_arguments, repaired


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
    assert read_arguments(raw) == Arguments(value)


@pytest.mark.parametrize(
    ("raw", "complaint"),
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
def test_unusable_arguments_are_empty_with_the_reason_in_words(raw: str, complaint: str) -> None:
    arguments = read_arguments(raw)

    assert arguments.value == {}
    assert complaint in arguments.complaint


@given(st.one_of(st.text(), st.recursive(st.none() | st.floats() | st.text() | st.integers(), st.lists)))
def test_whatever_arrives_the_value_can_be_sent_back(raw: Any) -> None:
    value = read_arguments(raw).value

    assert json.loads(json.dumps(value, allow_nan=False, ensure_ascii=False).encode()) == value


def test_surrogate_halves_are_joined_or_replaced() -> None:
    assert repaired("a\ud83d" + "\ude00b\ud800é") == "a😀b\ufffdé"
