from typing import get_args

from graph_agent.ports import JournalRow, RowStatus


def rows() -> dict[str, JournalRow]:
    return {
        status: JournalRow("c1", 1, "life", status, "2026-11-28T00:00:00.000Z") for status in get_args(RowStatus)
    }


def test_only_a_recorded_outcome_makes_a_row_finished() -> None:
    assert {status for status, row in rows().items() if row.is_finished} == {"success", "error"}


def test_a_row_may_have_begun_unless_it_says_that_it_did_not() -> None:
    assert {status for status, row in rows().items() if not row.may_have_started} == {"not_started"}
