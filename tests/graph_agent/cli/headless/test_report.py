from graph_agent.cli.headless.report import failure_report, pending_lines, result_report, resume_lines
from graph_agent.ports.usage import usage_report
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
        "interrupted: call-b bash, never_started bash",
        "answer with: graph-agent approvals approve CALL, or approvals reject CALL --reason TEXT",
        "decide with: graph-agent recover thread-1 --retry|--done|--cancel CALL, or in the chat",
    ]


def test_the_resume_line_is_a_command_to_paste() -> None:
    assert resume_lines("thread-1") == ("thread: thread-1", "go on with: graph-agent resume thread-1")
