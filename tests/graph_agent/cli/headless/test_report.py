import io
import re
from pathlib import Path

from graph_agent.cli.headless.report import (
    ProgressReporter,
    failure_report,
    pending_lines,
    result_report,
    resume_lines,
    shared_call_ids,
)
from graph_agent.events import TextDelta, ToolCallCreated, ToolCallFinished, ToolCallStarted, WarningIssued
from graph_agent.ports.usage import usage_report
from tests.fakes.database_rows import Rows, record_of
from tests.fakes.light_commands import asking, json_of
from tests.fakes.scripted_session import approval, recovery, rest

_APPROVAL = approval(
    "call-a",
    "bash",
    {"command": "ls"},
    reason="bash asks",
    asked_at="2026-11-28T00:00:00.000Z",
    preview={"kind": "text", "text": "ls"},
)
_RECOVERY = recovery(
    "call-b", "bash", {"command": "make"}, reason="never_started", finding="nothing", finding_verdict="not_applied"
)


def test_a_done_run_reports_its_answer() -> None:
    done = rest("done", "four", usage={"total_tokens": 7})

    assert result_report(done) == {
        "status": "done",
        "thread_id": "thread-1",
        "checkpoint_id": "checkpoint-1",
        "answer": "four",
        "pending_approvals": [],
        "interrupted_calls": [],
        "usage": {"total_tokens": 7},
        "error": None,
    }


def test_open_questions_are_listed_as_approvals_and_calls() -> None:
    report = result_report(rest("interrupted", questions=(_APPROVAL, _RECOVERY)))

    assert report["pending_approvals"] == [
        {
            "call_id": "call-a",
            "thread_id": "thread-1",
            "tool_name": "bash",
            "arguments": {"command": "ls"},
            "risk": "medium",
            "risk_reason": "",
            "reason": "bash asks",
            "asked_at": "2026-11-28T00:00:00.000Z",
            "preview": {"kind": "text", "text": "ls"},
            "attempt": 1,
            "requires_input": False,
        }
    ]
    assert report["interrupted_calls"] == [
        {
            **_RECOVERY.call,
            "thread_id": "thread-1",
            "reason": "never_started",
            "partial_output": "",
            "finding": "nothing",
            "finding_verdict": "not_applied",
            "processes": [],
        }
    ]


def test_a_turn_broken_off_before_the_model_answered_counts_as_failed() -> None:
    assert result_report(rest("resumable"))["status"] == "failed"


def test_a_run_that_never_rested_reports_its_error() -> None:
    assert failure_report("held", "another process has it", None) == {
        "status": "held",
        "thread_id": None,
        "checkpoint_id": None,
        "answer": "",
        "pending_approvals": [],
        "interrupted_calls": [],
        "usage": usage_report(None),
        "error": "another process has it",
    }


def test_what_waits_is_told_with_the_way_to_answer_it() -> None:
    evil = approval("call-a", "bash", {"command": "ls"}, summary="bash \x1b[2Jls")

    lines = list(pending_lines(rest("interrupted", questions=(evil, _RECOVERY))))

    assert lines == [
        "waiting for approval: call-a bash (medium risk) bash \\x1b[2Jls",
        "interrupted: call-b bash, never started bash",
        "Respond: graph-agent approvals approve CALL, or approvals reject CALL --reason TEXT",
        "Resolve: graph-agent recover thread-1 --retry|--done|--cancel CALL, or in the chat",
    ]


def test_the_resume_line_is_a_command_to_paste() -> None:
    assert resume_lines("thread-1") == ("thread: thread-1", "Resume with: graph-agent resume thread-1")


def test_a_call_is_one_line_with_status_time_and_reason() -> None:
    stream = io.StringIO()
    news = ProgressReporter(stream)

    news(1, ToolCallCreated({"call_id": "c1", "tool_name": "bash", "summary": "bash ls"}))
    news(2, ToolCallStarted("c1", "bash", "bash ls"))
    news(3, TextDelta("not news"))
    news(4, ToolCallFinished("c1", "bash", "error", "bash ls", error="exit code 3"))
    news(5, ToolCallFinished("c2", "write_file", "cancelled", "a.txt", reason="not now"))

    told = re.sub(r"\d+\.\d s", "N s", stream.getvalue())
    assert told == "bash ls - error N s: exit code 3\nwrite_file a.txt - cancelled: not now\n"


def test_what_becomes_of_an_interrupted_call_that_does_not_run_again_is_a_decision() -> None:
    stream = io.StringIO()
    news = ProgressReporter(stream)

    news(1, ToolCallFinished("c1", "bash", "interrupted", "$ make", reason="outcome_unknown"))
    news(2, ToolCallFinished("c1", "bash", "success", "$ make", reason="outcome_unknown"))
    news(3, ToolCallStarted("c2", "bash", "$ make"))
    news(4, ToolCallFinished("c2", "bash", "error", "$ make", error="no", reason="outcome_unknown"))

    assert stream.getvalue().splitlines() == [
        "bash $ make - interrupted: outcome unknown",
        "bash $ make - success, as decided",
        "bash $ make - error 0.0 s: no",
    ]


def test_nothing_of_a_note_is_obeyed_by_the_terminal() -> None:
    stream = io.StringIO()

    ProgressReporter(stream)(1, WarningIssued("a\rb\x1b[2Jc"))

    assert stream.getvalue() == "note: a\\rb\\x1b[2Jc\n"


def test_what_a_thread_waits_for_has_the_shape_of_the_lists(rows: Rows) -> None:
    asking(rows)
    rows.call(record_of("executing", "call_b"))
    asking(rows, "t2")

    report = failure_report("limit", "late", "t1", rows.path)

    approvals = json_of(rows, "approvals", "list", "--thread", "t1")["approvals"]
    interrupted = json_of(rows, "calls", "t1", "--status", "interrupted")["calls"]
    assert report == failure_report("limit", "late", "t1") | {
        "checkpoint_id": "c1",
        "pending_approvals": approvals,
        "interrupted_calls": interrupted,
    }
    assert ([call["call_id"] for call in approvals], len(interrupted)) == (["t1:call_a"], 1)
    assert shared_call_ids(rows.path) == {"call_a"}


def test_what_cannot_be_read_is_told_as_nothing(tmp_path: Path, rows: Rows) -> None:
    reports = [failure_report("held", "no", "t1", database) for database in (tmp_path / "none.db", None)]
    assert reports == [failure_report("held", "no", "t1")] * 2
    assert failure_report("held", "no", "none", rows.path) == failure_report("held", "no", "none")
    assert shared_call_ids(None) == shared_call_ids(tmp_path / "none.db") == frozenset()
