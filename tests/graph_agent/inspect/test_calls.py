from typing import Any

import pytest

from graph_agent.app.reader import read_database
from graph_agent.errors import DamagedDatabase, UnknownId
from graph_agent.inspect import CallView, StandingAnswer
from tests.fakes.database_rows import START, Rows, record_of

_OUTCOME = {"status": "error", "output": "partly", "error": "exit code 2"}
_ANSWER = StandingAnswer("approve", "", "cli pid 7", START, None)


def test_calls_come_newest_thread_first_and_in_each_as_the_model_asked(rows: Rows) -> None:
    rows.thread("old", updated_at="1")
    rows.thread("new", updated_at="2")
    for thread_id in ("old", "new"):
        rows.call(record_of("success", "call_z"), thread_id)
        rows.call(record_of("success", "call_a"), thread_id)

    with read_database(rows.path) as reader:
        order = [(view.thread_id, view.record["call_id"]) for view in reader.calls()]
        of_old = [view.record["call_id"] for view in reader.calls("old")]
        shared = reader.shared_call_ids()

    assert order == [("new", "call_z"), ("new", "call_a"), ("old", "call_z"), ("old", "call_a")]
    assert of_old == ["call_z", "call_a"]
    assert shared == {"call_z", "call_a"}


def test_the_newest_finished_journal_row_is_the_result_and_undone_rows_do_not_count(rows: Rows) -> None:
    rows.thread(next_nodes=("tool_execution",))
    rows.call(record_of("executing", attempt=3))
    rows.journal("interrupted", attempt=1)
    rows.journal("error", _OUTCOME, attempt=2)
    rows.journal("success", {"output": "undone"}, attempt=3, reverted=1)

    with read_database(rows.path) as reader:
        call = reader.call("t1", "call_a")

    assert call == CallView(
        "t1",
        record_of(
            "error",
            attempt=3,
            result="partly",
            error_msg="exit code 2",
            started_at=START,
            ended_at=START,
            started=True,
            stored_status="executing",
        ),
    )


@pytest.mark.parametrize(
    ("columns", "answer"),
    [
        ({}, _ANSWER),
        ({"superseded_at": START}, None),
        ({"attempt": 2}, None),
        ({"args_digest": "other"}, None),
        ({"question": "recovery"}, None),
    ],
)
def test_only_an_answer_to_this_very_question_stands(
    rows: Rows, columns: dict[str, Any], answer: StandingAnswer | None
) -> None:
    rows.thread(next_nodes=("human_approval",))
    rows.call(record_of("awaiting_approval"))
    rows.decision("approve", **columns)

    with read_database(rows.path) as reader:
        approvals = reader.approvals()

    assert approvals == [CallView("t1", record_of("awaiting_approval"), answer)]
    assert approvals[0].is_waiting is (answer is None)


def test_a_question_abandoned_on_a_branch_the_thread_came_away_from_is_not_asked(rows: Rows) -> None:
    rows.thread(next_nodes=())
    rows.call(record_of("awaiting_approval"))

    with read_database(rows.path) as reader:
        assert reader.approvals() == []


def test_a_record_that_was_never_stored_whole_still_has_the_fields_readers_rely_on(rows: Rows) -> None:
    rows.thread()
    rows.execute(
        "INSERT INTO call_log (thread_id, call_id, seq, tool_name, status, record, checkpoint_id, updated_at)"
        """ VALUES ('t1', 'call_a', 1, 'bash', 'error', '{"status": "error", "tool_name": "bash"}', 'c', 'then')"""
    )

    with read_database(rows.path) as reader:
        call = reader.call("t1", "call_a")

    assert call.record == {
        "call_id": "call_a",
        "tool_name": "bash",
        "arguments": {},
        "status": "error",
        "result": None,
        "error_msg": None,
    }


def test_a_call_that_is_not_there_is_told(rows: Rows) -> None:
    with read_database(rows.path) as reader, pytest.raises(UnknownId, match="Thread 't1' has no call 'call_a'"):
        reader.call("t1", "call_a")


def test_a_column_that_is_not_json_is_named_as_damage(rows: Rows) -> None:
    rows.thread()
    rows.call(record_of("success"))
    rows.execute("UPDATE call_log SET record = '{'")

    with read_database(rows.path) as reader, pytest.raises(DamagedDatabase, match="must hold JSON"):
        reader.calls()
