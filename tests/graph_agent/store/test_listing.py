from typing import Any

import pytest
from langgraph.types import Send

from graph_agent.store.listing import next_nodes, outcome, timestamp


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
