from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage

from graph_agent.calls import REPLACES, merge_calls, merge_messages, merge_names
from graph_agent.errors import DamagedDatabase

_MESSAGES = st.one_of(
    st.builds(lambda key, text: HumanMessage(text, id=key), st.sampled_from("abc"), st.text(max_size=3)),
    st.builds(lambda key: RemoveMessage(id=key), st.sampled_from("abc")),
    st.builds(
        lambda key, gone: HumanMessage("sum", id=key, response_metadata={REPLACES: gone}),
        st.sampled_from("abs"),
        st.lists(st.sampled_from("abcd"), max_size=3),
    ),
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


def test_a_summary_stands_where_the_first_of_what_it_replaces_stood() -> None:
    old: list[AnyMessage] = [HumanMessage(key, id=key) for key in "abcd"]
    summary = HumanMessage("b and c", id="s", response_metadata={REPLACES: ["c", "b", "gone long ago"]})

    once = merge_messages(old, [summary])

    assert [message.id for message in once] == ["a", "s", "d"]
    assert merge_messages(once, [summary]) == once


def test_odd_words_about_what_is_replaced_replace_nothing() -> None:
    odd = HumanMessage("b", id="b", response_metadata={REPLACES: 7})

    assert merge_messages([HumanMessage("a", id="a")], [odd]) == [HumanMessage("a", id="a"), odd]


@pytest.mark.parametrize("write", [5, [5], "text"])
def test_a_write_that_holds_no_message_is_named_as_damage(write: Any) -> None:
    with pytest.raises(DamagedDatabase, match="The stored conversation has a shape that is never stored"):
        merge_messages([], [write])


@pytest.mark.parametrize("write", [5, ["c1"], {"c1": 5}])
def test_a_write_that_holds_no_record_is_named_as_damage(write: Any) -> None:
    with pytest.raises(DamagedDatabase, match="The stored calls has a shape that is never stored"):
        merge_calls({}, [write])
