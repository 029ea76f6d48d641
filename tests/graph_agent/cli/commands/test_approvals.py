import json
import os
from pathlib import Path
from typing import Any

import pytest

from graph_agent.errors import UsageError
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
        "summary": "make",
        "args_digest": "d1",
        "requires_input": False,
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
    assert told == ("reject: call_a of thread t1\nResume with: graph-agent resume t1\n")
    assert text_of(rows, "approvals", "list") == (f"call_a is answered (reject by {by}) but not applied yet.\n")


def test_without_a_database_nothing_waits(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.db")

    assert run("approvals", "list", "--db", missing).stdout == "No pending approvals.\n"
    assert json.loads(run("approvals", "list", "--db", missing, "--json").stdout) == {
        "approvals": [],
        "answered": [],
    }
    assert str(run("approvals", "approve", "call_a", "--db", missing).exception)
    assert list(tmp_path.iterdir()) == []


def _broken_off(rows: Rows, thread_id: str = "t1", **fields: Any) -> None:
    rows.thread(thread_id, next_nodes=("tool_execution",), checkpoint_id="c1")
    rows.call(record_of("executing", **fields), thread_id)


def test_the_list_holds_each_call_with_what_is_known_of_it(rows: Rows) -> None:
    _broken_off(rows, approved_at=START)

    assert json_of(rows, "recover") == {
        "calls": [
            {
                **record_of("interrupted", approved_at=START),
                "thread_id": "t1",
                "stored_status": "executing",
                "reason": "never_started",
                "started": False,
                "partial_output": "",
                "finding": "",
                "finding_verdict": "",
                "processes": [],
                "answer": None,
            }
        ]
    }


def test_a_decision_is_recorded_once_and_the_second_exits_with_1(rows: Rows) -> None:
    _broken_off(rows)

    [given] = json_of(rows, "recover", "--cancel", "call_a")["calls"]
    late = run("recover", "t1", "--retry", "call_a", "--json", "--db", str(rows.path))

    by = f"cli pid {os.getpid()}"
    assert (given["kind"], given["accepted"], given["by"]) == ("cancel", True, by)
    assert (late.exit_code, json.loads(late.stdout)) == (1, {"calls": [{**given, "accepted": False}]})
    told = text_of(rows, "recover")
    assert f"resolved: cancel by {by}, not applied yet" in told
    assert "Resolve with" not in told
    assert told.endswith("\nResume with: graph-agent resume t1\n")


def test_a_call_id_of_several_threads_is_printed_as_it_is_accepted(rows: Rows) -> None:
    _broken_off(rows)
    _broken_off(rows, "t2")

    names = [call["call_id"] for call in json_of(rows, "recover")["calls"]]
    text_of(rows, "recover", "--retry", names[0], "--cancel", names[1])

    assert sorted(names) == ["t1:call_a", "t2:call_a"]
    assert {call["answer"]["kind"] for call in json_of(rows, "recover")["calls"]} == {"retry", "cancel"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--all", "stop"), "retry, done, cancel"),
        (("--result", "x"), "--done CALL"),
    ],
)
def test_options_that_make_no_sense_are_refused(rows: Rows, options: tuple[str, ...], words: str) -> None:
    _broken_off(rows)

    refused = run("recover", *options, "--db", str(rows.path)).exception

    assert isinstance(refused, UsageError)
    assert words in str(refused)


def test_without_a_database_nothing_was_broken_off(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.db")

    assert run("recover", "--db", missing).stdout == "No interrupted calls.\n"
    assert json.loads(run("recover", "--json", "--db", missing).stdout) == {"calls": []}
    assert list(tmp_path.iterdir()) == []
