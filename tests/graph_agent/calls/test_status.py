import itertools

import pytest

from graph_agent.calls import FINAL, INITIAL, STATUSES, TRANSITIONS, is_allowed, require_allowed
from graph_agent.errors import ForbiddenTransition


def test_the_table_has_exactly_the_rows_the_recovery_design_rests_on() -> None:
    rows = {(step.source, step.target) for step in TRANSITIONS}

    assert rows == {
        ("pending", "awaiting_approval"),
        ("pending", "executing"),
        ("pending", "error"),
        ("pending", "cancelled"),
        ("awaiting_approval", "pending"),
        ("awaiting_approval", "cancelled"),
        ("executing", "success"),
        ("executing", "error"),
        ("executing", "interrupted"),
        ("interrupted", "pending"),
        ("interrupted", "cancelled"),
        ("interrupted", "success"),
    }


def test_finished_calls_have_no_way_out() -> None:
    ways_out = {
        (source, target)
        for source, target in itertools.product(STATUSES, repeat=2)
        if source in FINAL and is_allowed(source, target)
    }

    assert not ways_out
    assert set(FINAL) == {"success", "error", "cancelled"}


def test_a_record_is_never_created_as_interrupted_or_successful() -> None:
    assert set(STATUSES) - INITIAL == {"interrupted", "success"}


def test_a_forbidden_change_is_refused_with_the_allowed_ones_named() -> None:
    with pytest.raises(
        ForbiddenTransition, match=r"'c1'.*'interrupted' to 'executing'.*cancelled, pending, success"
    ):
        require_allowed("c1", "interrupted", "executing")
