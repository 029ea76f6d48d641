import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_agent.inspect.state import Change, diff_values

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ({"a": 1}, {"a": 2}, [Change("a", "changed", 1, 2)]),
        ({"a": {"b": 1}}, {"a": {"c": 1}}, [Change("a.c", "added", None, 1), Change("a.b", "removed", 1, None)]),
        ({"a": [1, 2]}, {"a": [1]}, [Change("a.1", "removed", 2, None)]),
        ({"a": 1}, {"a": True}, [Change("a", "changed", old=1, new=True)]),
        ({"a": [1]}, {"a": "text"}, [Change("a", "changed", [1], "text")]),
    ],
)
def test_each_place_that_differs_is_named(old: Any, new: Any, changes: list[Change]) -> None:
    assert diff_values(old, new) == changes


def test_messages_are_compared_by_id_wherever_they_stand() -> None:
    one, two, edited = {"id": "m1", "content": "a"}, {"id": "m2", "content": "b"}, {"id": "m1", "content": "c"}

    assert diff_values({"messages": [one, two]}, {"messages": [two, edited]}) == [
        Change("messages.m1.content", "changed", "a", "c")
    ]


@given(_JSON)
def test_nothing_differs_from_itself(value: Any) -> None:
    assert diff_values(value, value) == []


@given(_JSON, _JSON)
def test_two_values_that_differ_differ_somewhere(old: Any, new: Any) -> None:
    same = json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True)

    assert (diff_values(old, new) == []) == same
