import json
from pathlib import Path
from typing import Any

import pytest

from graph_agent.calls import OUTCOMES
from graph_agent.cli.views.calls import call_json, call_table, format_call
from graph_agent.inspect import CallView, StandingAnswer
from tests.fakes.database_rows import START, Rows, record_of
from tests.fakes.light_commands import json_of, run, text_of

_ANSWER = StandingAnswer("reject", "no", "chat", "then", None)


def test_a_call_as_json_is_its_record_with_the_thread_and_who_answered() -> None:
    plain = CallView("t1", record_of("success"))
    answered = CallView("t1", record_of("cancelled"), _ANSWER)

    assert call_json(plain) == {"thread_id": "t1", **record_of("success")}
    assert call_json(answered) == {
        "thread_id": "t1",
        **record_of("cancelled"),
        "answered_by": "chat",
        "answered_at": "then",
    }


def test_the_table_says_why_a_call_ended_as_it_did() -> None:
    bare = record_of("success", "call_d", reason="allowed")
    del bare["risk"]
    calls = [
        CallView("t1", record_of("error", error_msg="exit code 2", summary="$ make: no rule", ended_at="9")),
        CallView("t1", record_of("cancelled", "call_b", reason="stopped by user", summary="make")),
        CallView("t1", record_of("awaiting_approval", "call_c", reason="asks", summary="make"), _ANSWER),
        CallView("t1", bare),
        CallView("t1", record_of("success", "call_e", summary="exit code 0", arguments={"command": "make\n  all"})),
        CallView("t1", record_of("error", "call_f", summary="no such file", error_msg="no such file")),
    ]

    assert list(call_table(calls, frozenset())) == [
        "CALL    STATUS             RISK    TOOL  ATTEMPT  WHEN  SUMMARY",
        "call_a  error              medium  bash  1        9     $ make: no rule (exit code 2)",
        "call_b  cancelled          medium  bash  1              make (stopped by user)",
        "call_c  awaiting_approval  medium  bash  1              make (rejected by chat, not applied yet)",
        "call_d  success            -       bash  1              bash",
        "call_e  success            medium  bash  1              $ make all: exit code 0",
        "call_f  error              medium  bash  1              $ make: no such file",
    ]


_DECISIONS = [
    ("reject", "chat", "not now", "rejected", "by chat: not now"),
    ("deny", "policy", "no network", "denied", "by policy: no network"),
    ("stop", "chat", "stopped by user, may have partly run", "stopped", "by user: may have partly run"),
    ("stop", "", "stopped by user", "stopped", "by user"),
    ("limit", "policy", "it failed too often", "stopped", "by a limit: it failed too often"),
    ("cancel", "chat", "outcome_unknown", "cancelled", "by chat: outcome unknown"),
]


@pytest.mark.parametrize(("decision", "by", "reason", "outcome", "cause"), _DECISIONS)
def test_a_call_of_a_version_without_outcomes_has_one_by_its_decision(
    decision: str, by: str, reason: str, outcome: str, cause: str, rows: Rows
) -> None:
    rows.thread()
    rows.call(record_of("cancelled", decision=decision, decided_by=by, reason=reason))
    rows.call(record_of("success", "call_b", decision=decision))

    told = {call["call_id"]: call.get("outcome") for call in json_of(rows, "calls")["calls"]}
    [row] = [line for line in text_of(rows, "calls").splitlines() if "call_a" in line]

    assert told == {"call_a": outcome, "call_b": None}
    assert (row.split()[2], f"({cause})" in row) == (outcome, True), row


def test_calls_are_listed_by_outcome_and_by_the_status_that_all_outcomes_have(rows: Rows) -> None:
    rows.thread()
    for decision in OUTCOMES:
        rows.call(record_of("cancelled", f"call_{decision}", decision=decision))

    listed = {
        word: [call["call_id"] for call in json_of(rows, "calls", "--status", word)["calls"]]
        for word in ("stopped", "denied", "cancelled")
    }

    assert listed == {
        "stopped": ["call_stop", "call_limit"],
        "denied": ["call_deny"],
        "cancelled": [f"call_{decision}" for decision in OUTCOMES],
    }


def test_ids_are_shortened_and_shared_ones_name_their_thread() -> None:
    calls = [
        CallView("t1", record_of("success", "call_0123456789abcdef-a")),
        CallView("t1", record_of("success", "call_b")),
        CallView("t2", record_of("success", "call_b")),
    ]

    here = {"t1": "/a", "t2": "/a"}
    ids = [line.split()[1] for line in call_table(calls, frozenset(["call_b"]), workspaces=here)][1:]

    assert ids == ["abcdef-a"[-8:], "t1:call_b", "t2:call_b"]


def test_workspaces_are_shown_if_there_are_several() -> None:
    calls = [CallView("t1", record_of("success")), CallView("t2", record_of("success", "call_b"))]

    one = next(call_table(calls, frozenset(), workspaces={"t1": "/a", "t2": "/a"}))
    several = list(call_table(calls, frozenset(), workspaces={"t1": "/a", "t2": "/b"}))

    assert one.split() == ["THREAD", "CALL", "STATUS", "RISK", "TOOL", "ATTEMPT", "WHEN", "SUMMARY"]
    assert [line.split()[-2:] for line in several] == [["WORKSPACE", "SUMMARY"], ["/a", "bash"], ["/b", "bash"]]


@pytest.mark.parametrize(
    ("fields", "lines"),
    [
        (
            {
                "arguments": {"command": "seq\x1b[2J", "timeout": 3},
                "result": "".join(f"line {number}\n" for number in range(50)),
            },
            [
                "  command: seq\\x1b[2J",
                "  timeout: 3",
                "  result:",
                *(f"  │ line {number}" for number in range(50)),
            ],
        ),
        (
            {"arguments": {}, "error_msg": "no", "metadata": {"diff": {"unified": "--- a\n+++ a\n-x\n+y\n"}}},
            ["  error: no", "  change:", "  │ --- a", "  │ +++ a", "  │ -x", "  │ +y"],
        ),
    ],
    ids=["arguments and result", "error and change"],
)
def test_a_call_is_shown_in_full(fields: dict[str, Any], lines: list[str]) -> None:
    assert list(format_call(CallView("t1", record_of("success", **fields)))) == lines


def test_calls_are_records_with_their_thread_and_can_be_filtered(rows: Rows) -> None:
    rows.thread(next_nodes=("tool_execution",))
    rows.call(record_of("executing"))
    rows.call(record_of("success", "call_b", tool_name="grep"))

    broken = record_of("interrupted", reason="never_started", started=False, stored_status="executing")
    done = record_of("success", "call_b", tool_name="grep")
    assert json_of(rows, "calls") == {"calls": [{"thread_id": "t1", **broken}, {"thread_id": "t1", **done}]}
    assert [call["call_id"] for call in json_of(rows, "calls", "--status", "interrupted")["calls"]] == ["call_a"]
    assert [call["call_id"] for call in json_of(rows, "calls", "t1", "--tool", "grep")["calls"]] == ["call_b"]
    assert [call["call_id"] for call in json_of(rows, "calls", "call_b")["calls"]] == ["call_b"]
    assert len(text_of(rows, "calls", "t1").splitlines()) == 3
    assert text_of(rows, "calls", "call_a").splitlines()[2:] == ["  command: make"]


def test_what_a_rewind_reverted_is_marked_as_such(rows: Rows) -> None:
    rows.thread()
    for call_id, reverted in (("call_a", [1]), ("call_b", [1, 0]), ("call_c", [0])):
        rows.call({**record_of("success"), "call_id": call_id})
        for attempt, is_reverted in enumerate(reverted, 1):
            rows.journal("success", {"output": ""}, call_id=call_id, attempt=attempt, reverted=is_reverted)

    listed = json_of(rows, "calls")["calls"]
    [both] = json_of(rows, "calls", "call_b")["calls"]
    shown, table = text_of(rows, "calls", "call_b"), text_of(rows, "calls")

    marked = {call["call_id"]: call.get("reverted", False) for call in listed}
    assert marked == {"call_a": True, "call_b": False, "call_c": False}
    assert [(one["attempt"], one["is_reverted"]) for one in both["attempts"]] == [(1, True), (2, False)]
    attempts = [line for line in shown.splitlines() if "  attempt " in line]
    assert [line.endswith("reverted by a rewind") for line in attempts] == [True, False]
    assert table.count("reverted") == 1


def test_a_decision_that_is_not_applied_yet_is_shown_with_its_call(rows: Rows) -> None:
    rows.thread(next_nodes=("human_approval",))
    rows.call(record_of("interrupted"))
    rows.decision("retry", "recovery")

    [call] = json_of(rows, "calls")["calls"]

    assert (call["status"], call["answered_by"], call["answered_at"]) == ("interrupted", "cli pid 7", START)


def test_an_unknown_status_is_an_error_that_lists_the_known_ones(rows: Rows) -> None:
    refused = run("calls", "--status", "broken", "--db", str(rows.path))

    assert "'broken'. Choose one of: pending, awaiting_approval" in str(refused.exception)


def test_without_a_database_there_are_no_calls(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.db")

    assert run("calls", "--db", missing).stdout == "No calls.\n"
    assert run("calls", "--status", "success", "--db", missing).stdout == "No matching calls.\n"
    assert json.loads(run("calls", "--db", missing, "--json").stdout) == {"calls": []}
    assert missing in str(run("calls", "t1", "--db", missing).exception)
