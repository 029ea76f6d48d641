import json
from pathlib import Path

import pytest

from tests.fakes.database_rows import START, Rows
from tests.fakes.light_commands import asking, json_of, run, text_of


def test_threads_list_has_the_documented_shape(rows: Rows) -> None:
    asking(rows)

    listed = json_of(rows, "threads", "list")

    assert listed == {
        "threads": [
            {
                "thread_id": "t1",
                "title": "Build it",
                "workspace": "",
                "status": "waiting",
                "updated_at": START,
                "checkpoint_id": "c1",
                "turns": 0,
                "pending_approvals": 1,
                "interrupted_calls": 0,
                "answered_calls": 0,
                "model": "",
                "mode": "default",
                "created_at": START,
                "outcome": "",
                "parent_thread": None,
                "parent_call": None,
                "queued_messages": 0,
                "usage": None,
                "held_by": None,
            }
        ]
    }


def test_threads_come_newest_first(rows: Rows) -> None:
    for number in (1, 3, 2):
        rows.thread(f"t{number}", updated_at=f"2026-11-28T10:00:0{number}.000Z")

    assert [thread["thread_id"] for thread in json_of(rows, "threads", "list")["threads"]] == ["t3", "t2", "t1"]


def test_without_a_database_the_list_is_empty_and_nothing_is_created(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.db")

    printed = run("threads", "list", "--db", missing)
    as_json = run("threads", "list", "--db", missing, "--json")

    assert (printed.exit_code, printed.stdout) == (0, "No threads yet. Start one with: graph-agent chat\n")
    assert json.loads(as_json.stdout) == {"threads": []}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [["threads", "show"], ["inspect"]])
def test_no_id_means_the_newest_thread_here_or_of_the_file_that_is_named(
    rows: Rows, command: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rows.thread("elsewhere", workspace="/elsewhere")
    monkeypatch.chdir(tmp_path)

    here = run(*command, GRAPH_AGENT_DB=str(rows.path))
    named = run(*command, "--db", str(rows.path))

    assert str(tmp_path) in str(here.exception)
    assert "elsewhere" in f"{named.stdout}{named.exception}"


def test_showing_a_thread_as_json_holds_its_calls_and_its_conversation(rows: Rows) -> None:
    asking(rows)
    rows.message("user", {"content": "build"})

    shown = json_of(rows, "threads", "show", "call_a")

    assert (shown["thread_id"], [call["call_id"] for call in shown["calls"]]) == ("t1", ["call_a"])
    assert shown["transcript"] == [
        {
            "seq": 1,
            "branch": 0,
            "message_id": "m1",
            "role": "user",
            "body": {"content": "build"},
            "checkpoint_id": "c1",
            "at": START,
        }
    ]


def test_a_thread_that_is_not_there_is_told(rows: Rows) -> None:
    assert "'nothing'" in str(run("threads", "show", "nothing", "--db", str(rows.path)).exception)
    assert text_of(rows, "threads", "list") == "No threads yet. Start one with: graph-agent chat\n"
