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
