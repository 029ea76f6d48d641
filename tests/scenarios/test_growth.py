"""Growth laws, by counting: what a step adds to the database, however long the thread is already."""

import asyncio
from pathlib import Path

import pytest

from tests.scenarios.growing import RESULT, Growth, grow

_STEPS, _KEEP_TURNS = 300, 20
_TABLES = ("checkpoints", "writes", "transcript", "ledger", "journal")


@pytest.fixture(scope="module")
def growth(tmp_path_factory: pytest.TempPathFactory) -> Growth:
    return asyncio.run(grow(tmp_path_factory.mktemp("growth") / "agent.db", _STEPS, _KEEP_TURNS))


def test_until_it_is_pruned_a_step_adds_as_many_rows_late_as_early(growth: Growth) -> None:
    first, then = (
        {table: growth.rows[end][table] - growth.rows[end - 9][table] for table in _TABLES} for end in (9, 18)
    )

    assert first == then


def test_a_thread_that_is_pruned_at_rest_grows_with_what_is_new_in_it(growth: Growth) -> None:
    cuts = [
        turn for turn in range(1, 100) if growth.rows[turn]["checkpoints"] < growth.rows[turn - 1]["checkpoints"]
    ]
    early, late = 3, cuts[-1]

    assert growth.pages[late] / late <= 1.3 * growth.pages[early] / early
    assert growth.bytes_per_step(cuts[0], late) <= 4 * RESULT


def test_checkpoints_do_not_pile_up_while_what_was_said_and_done_stays(growth: Growth) -> None:
    assert growth.rows[-1]["checkpoints"] <= max(rows["checkpoints"] for rows in growth.rows[:30])
    assert growth.rows[-1]["journal"] == growth.rows[-1]["ledger"] == _STEPS


def test_a_turn_takes_as_many_statements_late_as_early(growth: Growth) -> None:
    assert len({*growth.statements[5:15]}) == 1
    # Now and then the thread is pruned at rest, and what that takes is bounded too.
    assert min(growth.statements[50:]) <= growth.statements[5] + 2
    assert max(growth.statements) <= growth.statements[5] + 50


@pytest.mark.sweep
@pytest.mark.timeout(900)
async def test_after_a_thousand_steps_a_thread_takes_no_more_per_step_than_after_ten(tmp_path: Path) -> None:
    growth = await grow(tmp_path / "agent.db", 1002, _KEEP_TURNS)
    cuts = [
        turn for turn in range(1, 334) if growth.rows[turn]["checkpoints"] < growth.rows[turn - 1]["checkpoints"]
    ]
    late = cuts[-1]

    assert growth.pages[late] / late <= 1.3 * growth.pages[3] / 3
    assert growth.bytes_per_step(cuts[0], late) <= 4 * RESULT
    assert max(growth.statements) <= growth.statements[5] + 100
