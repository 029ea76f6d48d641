import json
from pathlib import Path

from tests.fakes.database_rows import START, Rows, record_of
from tests.fakes.light_commands import json_of, run


def test_calls_are_records_with_their_thread_and_can_be_filtered(rows: Rows) -> None:
    rows.thread(next_nodes=("tool_execution",))
    rows.call(record_of("executing"))
    rows.call(record_of("success", "call_b", tool_name="grep"))

    broken = record_of("interrupted", reason="never_started", begun=False, stored_status="executing")
    done = record_of("success", "call_b", tool_name="grep")
    assert json_of(rows, "calls") == {"calls": [{"thread_id": "t1", **broken}, {"thread_id": "t1", **done}]}
    assert [call["call_id"] for call in json_of(rows, "calls", "--status", "interrupted")["calls"]] == ["call_a"]
    assert [call["call_id"] for call in json_of(rows, "calls", "t1", "--tool", "grep")["calls"]] == ["call_b"]
    assert [call["call_id"] for call in json_of(rows, "calls", "call_b")["calls"]] == ["call_b"]


def test_a_call_that_is_named_is_shown_whole(rows: Rows) -> None:
    rows.thread()
    rows.call(record_of("success", result="".join(f"line {number}\n" for number in range(30))))
    rows.call(record_of("success", "call_b"))

    whole = run("calls", "call_a", "--db", str(rows.path)).stdout.splitlines()
    table = run("calls", "t1", "--db", str(rows.path)).stdout.splitlines()

    assert whole[2:] == ["  command: make", "  result:", *(f"  │ line {number}" for number in range(30))]
    assert len(table) == 3


def test_an_answer_that_waits_to_be_taken_in_is_told_with_its_call(rows: Rows) -> None:
    rows.thread(next_nodes=("human_approval",))
    rows.call(record_of("interrupted"))
    rows.decision("retry", "recovery")

    [call] = json_of(rows, "calls")["calls"]

    assert (call["status"], call["answered_by"], call["answered_at"]) == ("interrupted", "cli pid 7", START)


def test_a_status_that_does_not_exist_is_named_with_those_that_do(rows: Rows) -> None:
    refused = run("calls", "--status", "broken", "--db", str(rows.path))

    assert "'broken' is not a status of a call; use one of: pending, awaiting_approval" in str(refused.exception)


def test_without_a_database_there_are_no_calls_and_no_thread_to_ask_for(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.db")

    assert run("calls", "--db", missing).stdout == "No calls.\n"
    assert run("calls", "--status", "success", "--db", missing).stdout == "No such calls.\n"
    assert json.loads(run("calls", "--db", missing, "--json").stdout) == {"calls": []}
    assert "there is nothing yet: no database at" in str(run("calls", "t1", "--db", missing).exception)
