import json
import os
from pathlib import Path

from tests.fakes.database_rows import START, Rows, record_of
from tests.fakes.light_commands import asking, json_of, run, text_of


def test_approvals_list_has_the_documented_shape_and_keeps_answered_ones_apart(rows: Rows) -> None:
    asking(rows)
    asking(rows, "t2")
    rows.call(record_of("awaiting_approval", "call_b"))
    rows.decision("approve", call_id="call_b")

    listed = json_of(rows, "approvals", "list")

    assert listed["approvals"][0] == {
        "call_id": "t1:call_a",
        "thread_id": "t1",
        "tool_name": "bash",
        "arguments": {"command": "make"},
        "risk": "medium",
        "reason": "runs a command",
        "asked_at": START,
        "preview": {"text": "$ make"},
        "attempt": 1,
        "kind": None,
        "display": "make",
        "digest": "d1",
        "wants_answer": False,
    }
    assert [item["call_id"] for item in listed["approvals"]] == ["t1:call_a", "t2:call_a"]
    assert [(item["call_id"], item["answered_by"]) for item in listed["answered"]] == [("call_b", "cli pid 7")]


def test_an_id_that_is_printed_is_accepted(rows: Rows) -> None:
    asking(rows)
    asking(rows, "t2")
    ids = [item["call_id"] for item in json_of(rows, "approvals", "list")["approvals"]]

    accepted = [json_of(rows, "approvals", "approve", call_id)["thread_id"] for call_id in ids]

    assert accepted == ["t1", "t2"]


def test_an_approval_is_given_once_and_the_second_answer_exits_with_1(rows: Rows) -> None:
    asking(rows)

    given = json_of(rows, "approvals", "approve", "call_a")
    late = run("approvals", "reject", "call_a", "--reason", "no", "--json", "--db", str(rows.path))

    assert given == {
        "call_id": "call_a",
        "thread_id": "t1",
        "kind": "approve",
        "accepted": True,
        "by": f"cli pid {os.getpid()}",
        "at": given["at"],
    }
    assert (late.exit_code, json.loads(late.stdout)) == (1, {**given, "accepted": False})
    assert json_of(rows, "approvals", "list")["approvals"] == []


def test_a_rejection_waits_for_its_thread_with_who_gave_it(rows: Rows) -> None:
    asking(rows)

    told = text_of(rows, "approvals", "reject", "call_a", "--reason", "use ninja")

    by = f"cli pid {os.getpid()}"
    assert told == ("reject: call_a of thread t1\ngo on with: graph-agent resume t1\n")
    assert text_of(rows, "approvals", "list") == (
        f"call_a was answered: reject by {by}; its thread has not taken it in\n"
    )


def test_without_a_database_nothing_waits(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.db")

    assert run("approvals", "list", "--db", missing).stdout == "Nothing waits for an approval.\n"
    assert json.loads(run("approvals", "list", "--db", missing, "--json").stdout) == {
        "approvals": [],
        "answered": [],
    }
    assert "there is nothing yet" in str(run("approvals", "approve", "call_a", "--db", missing).exception)
    assert list(tmp_path.iterdir()) == []
