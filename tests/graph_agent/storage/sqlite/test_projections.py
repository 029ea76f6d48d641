from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.types import Send

from graph_agent.storage.sqlite.projections import nodes_after, outcome, timestamp


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("2026-11-28T02:00:00.123456+01:00", "2026-11-28T01:00:00.123Z"),
        ("2026-11-28T01:00:00+00:00", "2026-11-28T01:00:00.000Z"),
        ("yesterday", "yesterday"),
        (None, ""),
    ],
)
def test_times_have_one_form(given: Any, expected: str) -> None:
    assert timestamp(given) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"turn": {"outcome": "limit"}}, "limit"),
        ({"turn": {"steps": 3}}, ""),
        ({}, ""),
        (None, ""),
        ({"turn": 5}, ""),
    ],
)
def test_the_outcome_is_the_one_the_turn_names(values: Any, expected: str) -> None:
    assert outcome({"channel_values": values}) == expected


_TRIGGER = "branch:to:routing"


_SENDS = [Send("tool_execution", 1), Send("tool_execution", 2)]


@pytest.mark.parametrize(
    ("values", "versions", "seen", "expected"),
    [
        ({_TRIGGER: None, "messages": []}, {_TRIGGER: "2"}, {}, ["routing"]),
        ({_TRIGGER: None}, {_TRIGGER: "2"}, {"routing": {_TRIGGER: "1"}}, ["routing"]),
        ({_TRIGGER: None}, {_TRIGGER: "2"}, {"routing": {_TRIGGER: "2"}}, []),
        ({}, {_TRIGGER: "2"}, {}, []),
        ({"__pregel_tasks": _SENDS, "__start__": 1}, {"__start__": "1"}, {}, ["tool_execution", "__start__"]),
    ],
    ids=["not seen", "seen before", "seen", "spent", "sent to, once and first"],
)
def test_the_nodes_that_run_next_are_those_sent_to_and_those_with_an_unseen_trigger(
    values: Any, versions: Any, seen: Any, expected: list[str]
) -> None:
    checkpoint = {"channel_values": values, "channel_versions": versions, "versions_seen": seen}

    assert nodes_after(checkpoint) == expected


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["__start__", "branch:to:x", "x", "turn", "outcome", "__pregel_tasks"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["channel_values", "channel_versions", "versions_seen", "ts"]), _JSON))
def test_no_shape_of_a_checkpoint_makes_the_list_fail(checkpoint: dict[str, Any]) -> None:
    assert isinstance(nodes_after(checkpoint), list)
    assert isinstance(outcome(checkpoint), str)
    assert isinstance(timestamp(checkpoint.get("ts")), str)
