from pathlib import Path
from typing import Any

import pytest

from graph_agent.app.reader import read_database
from graph_agent.cli.export.markdown import markdown_page
from graph_agent.inspect.transcript import (
    Transcript,
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


def _read(database: Path, *named: Any) -> Transcript:
    with read_database(database) as reader:
        return read_transcript(reader, *named)


def test_each_call_follows_its_message_with_its_result(tmp_path: Path) -> None:
    replies = (calls(("c1", "read_a", {"path": "a.py"}), ("c2", "fail_b")), text("done"))
    play(tmp_path / "agent.db", "go", "more", replies=replies)

    transcript = _read(tmp_path / "agent.db", "thread-1", None)

    shown = [
        [(message.role, message.text, [(call.about, call.result) for call in message.calls]) for message in turn]
        for turn in transcript.turns
    ]
    assert shown == [
        [
            ("user", "go", []),
            ("assistant", "", [("a.py", "result of c1"), ("", "partial\nError: it broke")]),
            ("assistant", "done", []),
        ],
        [("user", "more", []), ("assistant", "end", [])],
    ]
    assert (transcript.title, transcript.tokens) == ("go", {"input_tokens": 20, "output_tokens": 10})
    assert thread_facts(transcript)["tokens"] == "~61 in, ~33 out, cost unknown"
    assert [call.record["status"] for call in transcript.calls] == ["success", "error"]
    assert all(call.seconds is not None for call in transcript.calls)


def test_secrets_are_stars_in_titles_texts_arguments_and_results(rows: Rows) -> None:
    rows.thread(title="use sk-secret-1")
    rows.message("user", {"content": "sk-secret-1 is the key"})
    asked = {"id": "call_a", "name": "bash", "args": {"command": "curl sk-secret-1"}}
    rows.message("assistant", {"content": "", "tool_calls": [asked]})
    rows.call(record_of("success", arguments={"command": "curl sk-secret-1"}, result="sk-secret-1!"))

    transcript = _read(rows.path, "t1", None, ["sk-secret-1"])

    assert "secret" not in str((transcript.title, transcript.messages))
    [call] = transcript.calls
    assert (call.about, call.result) == ("curl ***********", "***********!")


def test_a_call_without_a_record_is_shown_as_it_was_requested(rows: Rows) -> None:
    rows.thread()
    rows.message("assistant", {"content": "x", "tool_calls": [{"id": "c", "name": "ls", "args": {"path": "."}}]})

    transcript = _read(rows.path, "t1", None)

    assert transcript.messages == (
        TranscriptMessage(
            "assistant",
            transcript.messages[0].at,
            "x",
            {"input_tokens": 0, "output_tokens": 0},
            (
                TranscriptCall(
                    {"call_id": "c", "tool_name": "ls", "arguments": {"path": "."}, "status": "unknown"}, ""
                ),
            ),
        ),
    )
    assert transcript.title == "Thread t1"


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
def test_the_diff_of_a_call_is_the_change_or_the_proposal(record: dict[str, object], diff: str) -> None:
    assert TranscriptCall(record, "").diff == diff


def test_the_facts_of_a_call_explain_its_decision() -> None:
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
        "approved by me",
        "arguments edited by the user",
        "outcome unknown",
    ]
    assert (format_utc("2026-11-28T10:00:00.000+02:00"), format_utc("soon"), format_utc(None)) == (
        "2026-11-28 08:00:00 UTC",
        "soon",
        "",
    )


def page(rows: Rows) -> str:
    return "\n".join(markdown_page(_read(rows.path, "t1", None)))


def test_a_page_has_every_message_and_call(rows: Rows) -> None:
    rows.thread(title="Mend *it*", turns=1)
    rows.message("user", {"content": "mend a.py"})
    usage = {"input_tokens": 7, "output_tokens": 3}
    asked = {"id": "call_a", "name": "bash", "args": {"command": "make"}}
    rows.message("assistant", {"content": "on it", "tool_calls": [asked], "usage": usage})
    rows.call(record_of("success", result="ok", metadata={"diff": {"unified": "-a\n+b\n"}}))

    shown = page(rows)

    assert shown.startswith("# Mend \\*it\\*\n\n- thread: t1\n")
    assert shown.endswith(
        """
## Turn 1, 2026-11-28 10:00:00 UTC

**You**

> mend a.py

**Assistant** (7 tokens in, 3 out)

> on it

### bash: make

**success**, medium risk, `call_a`

```json
{
  "command": "make"
}
```

```diff
-a
+b
```

```text
ok
```"""
    )


def test_messages_stay_inside_their_quotes_and_fences(rows: Rows) -> None:
    rows.thread(title="# <b>", turns=1)
    rows.message("user", {"content": "# no heading\n<script>x</script> ![p](http://h/p.png)\n```\n<i> kept\n"})
    asked = {"id": "call_a", "name": "bash", "args": {"command": "````\n# out"}}
    rows.message("assistant", {"content": "a\x1b[31m\u202eb", "tool_calls": [asked]})
    rows.call(record_of("error", error_msg="```\n# out\n~~~"))

    lines = page(rows).split("\n")

    assert [line for line in lines if line.startswith("#")] == [
        "# \\# \\<b\\>",
        "## Turn 1, 2026-11-28 10:00:00 UTC",
        "### bash: make",
        "# out",
    ]
    quoted = [line for line in lines if line.startswith(">")]
    assert quoted[:5] == [
        "> # no heading",
        "> \\<script>x\\</script> \\![p](http://h/p.png)",
        "> ```",
        "> <i> kept",
        ">",
    ]
    assert quoted[5:] == ["> a\\x1b[31m\\u202eb"]
    around = lines.index("# out")
    assert (lines[around - 2], lines[around + 2]) == ("````text", "````")
