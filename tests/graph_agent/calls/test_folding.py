from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage

from graph_agent.calls import merge_messages, merge_names

_MESSAGES = st.one_of(
    st.builds(lambda key, text: HumanMessage(text, id=key), st.sampled_from("abc"), st.text(max_size=3)),
    st.builds(lambda key: RemoveMessage(id=key), st.sampled_from("abc")),
)
_WRITES = st.lists(st.one_of(_MESSAGES, st.lists(_MESSAGES, max_size=3)), max_size=6)


@given(_WRITES, _WRITES)
def test_folding_two_batches_gives_the_same_as_folding_them_together(first: list[Any], second: list[Any]) -> None:
    assert merge_messages(merge_messages([], first), second) == merge_messages([], first + second)


def test_a_message_with_a_known_id_takes_the_place_of_the_old_one() -> None:
    old: list[AnyMessage] = [HumanMessage("a", id="1"), AIMessage("b", id="2")]

    assert merge_messages(old, [HumanMessage("c", id="1")]) == [HumanMessage("c", id="1"), AIMessage("b", id="2")]


@pytest.mark.parametrize(
    ("more", "names"),
    [(["b", "a", "c"], ["a", "b", "c"]), ([], ["a"]), ("b", ["a"]), (None, ["a"]), ([1, "b"], ["a", "b"])],
)
def test_names_are_added_once_in_the_order_of_arrival_and_nothing_odd_raises(more: Any, names: list[str]) -> None:
    assert merge_names(["a"], more) == names
