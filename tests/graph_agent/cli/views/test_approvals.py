import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from graph_agent.cli.views.format import format_time_and_age
from graph_agent.cli.views.table import format_time
from graph_agent.config.paths import blob_dir
from graph_agent.errors import UsageError
from graph_agent.ports.background import boot_id, process_started
from graph_agent.storage.blobs import FileBlobs
from tests.fakes.database_rows import START, Rows, record_of
from tests.fakes.light_commands import asking, json_of, run, text_of

_BY = f"cli pid {os.getpid()}"


def _listed(rows: Rows, *filters: str) -> list[str]:
    return [call["call_id"] for call in json_of(rows, "approvals", "list", *filters)["approvals"]]


def test_the_list_has_the_documented_shape_and_keeps_answered_calls_apart(rows: Rows) -> None:
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
        "risk_reason": "",
        "reason": "runs a command",
        "asked_at": START,
        "preview": {"text": "$ make"},
        "attempt": 1,
        "kind": None,
        "summary": "make",
        "args_digest": "d1",
        "requires_input": False,
    }
    assert [(item["call_id"], item["answered_by"]) for item in listed["answered"]] == [("call_b", "cli pid 7")]
    ids = [item["call_id"] for item in listed["approvals"]]
    assert ids == ["t1:call_a", "t2:call_a"]
    accepted = [json_of(rows, "approvals", "approve", call_id)["thread_id"] for call_id in ids]
    assert accepted == ["t1", "t2"], "an id that is printed is accepted"


def test_a_pending_call_is_printed_with_what_is_needed_to_decide(rows: Rows) -> None:
    asking(rows, risk="high", preview={"kind": "diff", "text": "--- a\n+++ b"})
    rows.call(record_of("awaiting_approval", "call_b"))

    assert text_of(rows, "approvals", "list").splitlines() == [
        "call_a  bash  HIGH",
        f"  thread t1, asked {format_time_and_age(START)}",
        "  runs a command",
        "  │ --- a",
        "  │ +++ b",
        "",
        "call_b  bash  MEDIUM",
        "  thread t1, asked ",
        "  │ {",
        '  │   "command": "make"',
        "  │ }",
        "",
        "Respond with: graph-agent approvals approve CALL, or approvals reject CALL --reason TEXT",
    ]


@pytest.mark.parametrize(
    ("preview", "lines"),
    [
        ({"text": "\n".join(map(str, range(50)))}, "  │ 39\n  │ … 10 more lines; --json shows all\n"),
        ({"text": "\n".join(map(str, range(41)))}, "  │ 39\n  │ … 1 more line; --json shows all\n"),
        ({"kind": "text", "text": "in      /work"}, "  │ $ make\n  │ in      /work\n"),
    ],
    ids=["a long preview is cut", "one line is cut", "a command precedes its explanation"],
)
def test_the_preview_of_a_call_is_printed(rows: Rows, preview: dict[str, str], lines: str) -> None:
    asking(rows, preview=preview)

    assert lines in text_of(rows, "approvals", "list")


def test_workspaces_are_printed_if_calls_are_of_several(rows: Rows) -> None:
    asking(rows)
    rows.thread("t2", next_nodes=("human_approval",), workspace="/elsewhere")
    rows.call(record_of("awaiting_approval", "call_b"), "t2")

    assert "  thread t2 in /elsewhere, asked " in text_of(rows, "approvals", "list")


def test_calls_can_be_filtered_by_thread_tool_risk_and_age(rows: Rows) -> None:
    now = datetime.now(UTC).isoformat()
    asking(rows, "thread-one", risk="high", call_id="old", asked_at="2026-01-01T00:00:00Z")
    asking(rows, "thread-two", risk="medium", call_id="new", tool_name="web_fetch", asked_at=now)

    assert _listed(rows, "--tool", "grep") == []
    assert (_listed(rows, "--thread", "-one"), _listed(rows, "--tool", "web_fetch")) == (["old"], ["new"])
    assert (_listed(rows, "--risk", "high"), _listed(rows, "--older-than", "1h")) == (["old"], ["old"])
    assert sorted(_listed(rows, "--older-than", "0s")) == ["new", "old"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("approvals", "list", "--risk", "huge"), "low, medium, high"),
        (("approvals", "list", "--older-than", "x"), "--older-than 'x'"),
        (("approvals", "list", "--thread", "nowhere"), "'nowhere'"),
        *((("approvals", "edit", "call_a", "--arguments", text), repr(text)) for text in ("", "{", "[1]", '"x"')),
        (("recover", "--all", "stop"), "retry, done, cancel"),
        (("recover", "--result", "x"), "--done CALL"),
    ],
)
def test_a_wrong_option_is_a_usage_error_that_names_it(
    rows: Rows, arguments: tuple[str, ...], message: str
) -> None:
    asking(rows)

    refused = run(*arguments, "--db", str(rows.path)).exception

    assert (getattr(refused, "exit_code", None), message in str(refused)) == (UsageError("").exit_code, True)


def test_a_scope_needs_always(rows: Rows) -> None:
    asking(rows)

    wrong = run("approvals", "approve", "call_a", "--scope", "user", "--db", str(rows.path))

    assert (wrong.exit_code, "--always" in wrong.stderr) == (2, True)


def test_only_the_first_answer_counts_and_a_later_one_exits_with_1(rows: Rows) -> None:
    asking(rows)

    given = json_of(rows, "approvals", "approve", "call_a")
    late = run("approvals", "reject", "call_a", "--reason", "no", "--json", "--db", str(rows.path))

    expected = {"call_id": "call_a", "thread_id": "t1", "kind": "approve", "accepted": True, "by": _BY}
    assert given == {**expected, "at": given["at"]}
    assert (late.exit_code, json.loads(late.stdout)) == (1, {**given, "accepted": False})
    assert json_of(rows, "approvals", "list")["approvals"] == []


def test_a_late_answer_names_the_first_one_and_saves_no_permission(rows: Rows) -> None:
    asking(rows)
    rows.decision("reject")

    late = run("approvals", "approve", "call_a", "--db", str(rows.path))
    always = run("approvals", "approve", "call_a", "--always", "--json", "--db", str(rows.path))

    first = f"call_a was already answered: reject by cli pid 7, {format_time(START)}\n"
    assert (late.exit_code, late.stdout) == (1, first)
    shown = json.loads(always.stdout)
    assert (always.exit_code, shown["kind"], shown["accepted"], "always" in shown) == (1, "reject", False, False)
    assert json_of(rows, "policy", "list")["grants"] == []


def test_a_rejection_is_listed_until_its_thread_applies_it(rows: Rows) -> None:
    asking(rows)

    printed = text_of(rows, "approvals", "reject", "call_a", "--reason", "use ninja")

    assert printed == "Rejected call_a of thread t1.\nResume with: graph-agent resume t1\n"
    assert text_of(rows, "approvals", "list") == f"call_a is rejected by {_BY}, not applied yet.\n"
    [answered] = json_of(rows, "approvals", "list")["answered"]
    assert (answered["answer"], answered["outcome"], answered["answered_by"]) == ("reject", "rejected", _BY)


@pytest.mark.parametrize(
    ("command", "text", "result"),
    [
        (("approvals", "list"), "No pending approvals.\n", {"approvals": [], "answered": []}),
        (("recover",), "No interrupted calls.\n", {"calls": []}),
    ],
)
def test_without_a_database_nothing_is_open_and_none_is_created(
    tmp_path: Path, command: tuple[str, ...], text: str, result: object
) -> None:
    missing = str(tmp_path / "none.db")

    assert run(*command, "--db", missing).stdout == text
    assert json.loads(run(*command, "--json", "--db", missing).stdout) == result
    assert str(run("approvals", "approve", "call_a", "--db", missing).exception)
    assert list(tmp_path.iterdir()) == []


def _interrupt(rows: Rows, thread_id: str = "t1", **fields: Any) -> None:
    rows.thread(thread_id, next_nodes=("tool_execution",), checkpoint_id="c1")
    rows.call(record_of("executing", **fields), thread_id)


def test_recover_lists_each_interrupted_call_with_what_is_known_of_it(rows: Rows) -> None:
    _interrupt(rows, approved_at=START)

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


def test_an_interrupted_command_is_printed_with_its_output_and_what_still_runs(rows: Rows) -> None:
    _interrupt(rows, kind="execute", risk="high", started_at=START)
    FileBlobs(blob_dir(rows.path)).spool("t1", "call_a", 1).write_bytes(b"half\x1b[2J\nmore\n")
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as left:
        started = process_started(left.pid)
        rows.journal("executing", process_group=left.pid, process_started=started, boot_id=boot_id())

        lines = text_of(rows, "recover").splitlines()
        left.kill()

    assert lines[:9] == [
        "call_a  bash  HIGH  attempt 1",
        "  thread t1: started but did not finish; it may have taken effect partly or fully",
        f"  started {format_time_and_age(START)}",
        "  │ {",
        '  │   "command": "make"',
        "  │ }",
        "  output so far:",
        "  │ half",
        "  │ more",
    ]
    hint = "(a retry waits until they exit; terminate them with --end-processes)"
    assert f"  still running: pid {left.pid} {hint}" in lines
    assert lines[-1].startswith("Resolve with: graph-agent recover")


def test_only_the_first_recovery_decision_counts_and_a_later_one_exits_with_1(rows: Rows) -> None:
    _interrupt(rows)

    [given] = json_of(rows, "recover", "--cancel", "call_a")["calls"]
    late = run("recover", "t1", "--retry", "call_a", "--json", "--db", str(rows.path))

    assert (given["kind"], given["accepted"], given["by"]) == ("cancel", True, _BY)
    assert (late.exit_code, json.loads(late.stdout)) == (1, {"calls": [{**given, "accepted": False}]})
    printed = text_of(rows, "recover")
    assert f"resolved: cancelled by {_BY}, not applied yet" in printed
    assert "Resolve with" not in printed
    assert printed.endswith("\nResume with: graph-agent resume t1\n")


def test_a_call_id_of_several_threads_is_printed_as_it_is_accepted(rows: Rows) -> None:
    _interrupt(rows)
    _interrupt(rows, "t2")

    names = [call["call_id"] for call in json_of(rows, "recover")["calls"]]
    text_of(rows, "recover", "--retry", names[0], "--cancel", names[1])

    assert sorted(names) == ["t1:call_a", "t2:call_a"]
    assert {call["answer"]["kind"] for call in json_of(rows, "recover")["calls"]} == {"retry", "cancel"}


def test_a_decision_for_all_names_each_call_and_leaves_none(rows: Rows) -> None:
    rows.thread(next_nodes=("human_approval",), checkpoint_id="c1")
    rows.call(record_of("interrupted", reason="never_started"))
    rows.call(record_of("interrupted", "call_b", reason="never_started"))

    printed = text_of(rows, "recover", "t1", "--all", "done", "--result", "built")

    assert printed.splitlines() == [
        "Marked as done: call_a of thread t1.",
        "Marked as done: call_b of thread t1.",
        "Resume with: graph-agent resume t1",
    ]
    assert text_of(rows, "recover", "--all", "cancel") == "No interrupted calls.\n"
