import pytest

from graph_agent.graph.edges import EDGES, END, NODES, START, TARGETS, targets_of


def test_every_node_is_reached_and_left() -> None:
    sources, targets = {edge.source for edge in EDGES}, {edge.target for edge in EDGES}

    assert (sources - {START}, targets - {END}) == (set(NODES), set(NODES))


def test_no_two_rows_say_different_things_about_one_outcome() -> None:
    assert len({(edge.source, edge.outcome) for edge in EDGES}) == len(EDGES)


def test_an_outcome_outside_the_table_is_a_bug() -> None:
    with pytest.raises(KeyError):
        TARGETS["observation", "asked"]


def test_targets_come_without_repeats() -> None:
    assert targets_of("observation") == ("reasoning", END)
