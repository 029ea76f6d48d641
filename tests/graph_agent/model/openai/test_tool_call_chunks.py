import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_agent.model.openai.tool_call_chunks import ToolCallAssembler, parse_arguments, replace_surrogates


def test_equal_calls_keep_positions_of_their_own() -> None:
    calls = ToolCallAssembler()

    positions = [calls.add({"index": index, "function": {"name": "ls", "arguments": "{}"}}) for index in (0, 1)]

    assert positions == [(0, "ls", "{}"), (1, "ls", "{}")]


@pytest.mark.slow
@given(st.one_of(st.text(), st.recursive(st.none() | st.floats() | st.text() | st.integers(), st.lists)))
def test_whatever_arrives_the_value_can_be_sent_back(raw: Any) -> None:
    value = parse_arguments(raw).value

    assert json.loads(json.dumps(value, allow_nan=False, ensure_ascii=False).encode()) == value


def test_surrogate_halves_are_joined_or_replaced() -> None:
    assert replace_surrogates("a\ud83d" + "\ude00b\ud800é") == "a😀b\ufffdé"


_NAMES = ("bash", "", "", "")
_PIECES = ("", '{"command"', ': "l', 's"}')


@pytest.mark.parametrize(
    ("indexes", "ids"),
    [
        ((0, 1, 2, 3), ("c", "", "", "")),
        ((0, 1, 2, 3), ("", "", "", "")),
        ((5, 6, 7, 8), ("c", "", "", "")),
        ((0, None, None, None), ("c", "", "", "")),
        ((0, 0, 1, 1), ("c", "", "", "")),
        (("0", "1", "2", "3"), ("c", "", "", "")),
    ],
)
def test_fragments_without_a_name_continue_the_call_whatever_their_index_says(
    indexes: tuple[object, ...], ids: tuple[str, ...]
) -> None:
    calls = ToolCallAssembler()
    for index, call_id, name, piece in zip(indexes, ids, _NAMES, _PIECES, strict=True):
        calls.add({"index": index, "id": call_id, "function": {"name": name, "arguments": piece}})

    assert [(call.name, call.arguments()) for call in calls.calls] == [("bash", '{"command": "ls"}')]


def test_fragments_without_a_name_of_two_calls_stay_apart_by_their_index() -> None:
    calls = ToolCallAssembler()
    for index, name, piece in (
        *((0, "a", '{"x"'), (1, "b", '{"y"'), (0, "", ": 1}")),
        *((1, "", ": 2}"), (2, "", '{"z": 3}')),
    ):
        calls.add({"index": index, "function": {"name": name, "arguments": piece}})

    assert [(call.name, call.arguments()) for call in calls.calls] == [
        ("a", '{"x": 1}'),
        ("b", '{"y": 2}'),
        ("", '{"z": 3}'),
    ]


@pytest.mark.parametrize(
    ("raw", "is_cut"),
    [
        ('{"command": "ls', True),
        ('{"command": "ls"', True),
        ('{"command": "ls", ', True),
        ('{"command":', True),
        ("{", True),
        ('{"a": [1, {"b": tr', False),
        ('{"command": ls}', False),
        ('{"command": "a" "b"}', False),
        ("{'command': 1}", False),
        ("ls", False),
    ],
)
def test_arguments_that_were_cut_off_are_told_apart_from_malformed_ones(raw: str, is_cut: bool) -> None:
    error = parse_arguments(raw).error
    assert (error.startswith("the arguments end in the middle"), "not valid JSON" in error) == (is_cut, not is_cut)
