from pathlib import Path

import pytest

from graph_agent.cli.export.transcript import (
    TranscriptCall,
    TranscriptMessage,
    call_facts,
    format_utc,
    read_transcript,
    thread_facts,
)
from tests.fakes.database_rows import Rows, record_of
from tests.fakes.played_thread import play
from tests.fakes.scripted_model import calls, text


def test_each_call_stands_where_the_model_asked_for_it_with_what_it_was_told(tmp_path: Path) -> None:
    replies = (calls(("c1", "read_a", {"path": "a.py"}), ("c2", "fail_b")), text("done"))
    play(tmp_path / "agent.db", "go", "more", replies=replies)

    told = read_transcript(tmp_path / "agent.db", "thread-1", None)

    shown = [
        [(message.role, message.text, [(call.about, call.result) for call in message.calls]) for message in turn]
        for turn in told.turns
    ]
    assert shown == [
        [
            ("user", "go", []),
            ("assistant", "", [("a.py", "result of c1"), ("", "partial\nError: it broke")]),
            ("assistant", "done", []),
        ],
        [("user", "more", []), ("assistant", "end", [])],
    ]
    assert (told.title, told.tokens) == ("go", {"input_tokens": 20, "output_tokens": 10})
    assert thread_facts(told)["tokens"] == "~61 in, ~33 out, cost unknown"
    assert [call.record["status"] for call in told.calls] == ["success", "error"]
    assert all(call.seconds is not None for call in told.calls)


def test_secrets_are_stars_in_titles_texts_arguments_and_results(rows: Rows) -> None:
    rows.thread(title="use sk-secret-1")
    rows.message("user", {"content": "sk-secret-1 is the key"})
    asked = {"id": "call_a", "name": "bash", "args": {"command": "curl sk-secret-1"}}
    rows.message("assistant", {"content": "", "tool_calls": [asked]})
    rows.call(record_of("success", arguments={"command": "curl sk-secret-1"}, result="sk-secret-1!"))

    told = read_transcript(rows.path, "t1", None, ["sk-secret-1"])

    assert "secret" not in str((told.title, told.messages))
    [call] = told.calls
    assert (call.about, call.result) == ("curl ***********", "***********!")


def test_a_call_that_the_ledger_does_not_know_is_told_as_it_was_asked_for(rows: Rows) -> None:
    rows.thread()
    rows.message("assistant", {"content": "x", "tool_calls": [{"id": "c", "name": "ls", "args": {"path": "."}}]})

    told = read_transcript(rows.path, "t1", None)

    assert told.messages == (
        TranscriptMessage(
            "assistant",
            told.messages[0].at,
            "x",
            {"input_tokens": 0, "output_tokens": 0},
            (
                TranscriptCall(
                    {"call_id": "c", "tool_name": "ls", "arguments": {"path": "."}, "status": "unknown"}, ""
                ),
            ),
        ),
    )
    assert told.title == "Thread t1"


@pytest.mark.parametrize(
    ("record", "diff"),
    [
        ({"metadata": {"diff": {"unified": "made"}}, "preview": {"kind": "diff", "text": "shown"}}, "made"),
        ({"status": "awaiting_approval", "preview": {"kind": "diff", "text": "shown"}}, "shown"),
        ({"status": "success", "preview": {"kind": "diff", "text": "shown"}}, ""),
        ({"status": "awaiting_approval", "preview": {"kind": "text", "text": "shown"}}, ""),
        ({}, ""),
    ],
)
def test_the_diff_is_the_one_made_or_else_the_one_proposed(record: dict[str, object], diff: str) -> None:
    assert TranscriptCall(record, "").diff == diff


def test_what_stands_beside_a_call_says_how_it_came_about() -> None:
    record = {
        "status": "interrupted",
        "started_at": "2026-11-28T10:00:00.000Z",
        "ended_at": "2026-11-28T10:00:01.250Z",
        "risk": "high",
        "attempt": 2,
        "decision": "approve",
        "decided_by": "me",
        "edited": True,
        "reason": "outcome_unknown",
    }

    assert list(call_facts(TranscriptCall(record, ""))) == [
        "1.2 s",
        "high risk",
        "attempt 2",
        "approve by me",
        "arguments edited by the user",
        "outcome_unknown",
    ]
    assert (format_utc("2026-11-28T10:00:00.000+02:00"), format_utc("soon"), format_utc(None)) == (
        "2026-11-28 08:00:00 UTC",
        "soon",
        "",
    )
