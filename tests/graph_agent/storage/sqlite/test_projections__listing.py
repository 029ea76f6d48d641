import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.types import Send

from graph_agent.storage.sqlite.projections import next_nodes, outcome, timestamp


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


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ({}, '["routing"]'),
        ({"routing": {"branch:to:routing": "1"}}, '["routing"]'),
        ({"routing": {"branch:to:routing": "2"}}, "[]"),
    ],
)
def test_a_node_runs_next_while_it_has_not_seen_its_trigger(seen: Any, expected: str) -> None:
    checkpoint = {
        "channel_values": {"branch:to:routing": None, "messages": []},
        "channel_versions": {"branch:to:routing": "2"},
        "versions_seen": seen,
    }

    assert next_nodes(checkpoint) == expected


def test_a_trigger_that_is_spent_triggers_nothing() -> None:
    assert next_nodes({"channel_values": {}, "channel_versions": {"branch:to:routing": "2"}}) == "[]"


def test_nodes_that_are_sent_to_are_named_once_and_first() -> None:
    sends = [Send("tool_execution", 1), Send("tool_execution", 2)]

    assert (
        next_nodes({"channel_values": {"__pregel_tasks": sends, "__start__": 1}})
        == '["tool_execution","__start__"]'
    )


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
    assert isinstance(json.loads(next_nodes(checkpoint)), list)
    assert isinstance(outcome(checkpoint), str)
    assert isinstance(timestamp(checkpoint.get("ts")), str)
