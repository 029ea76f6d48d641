import json
from pathlib import Path

from tests.fakes.database_rows import START, Rows
from tests.fakes.light_commands import json_of, run, text_of
from tests.fakes.played_thread import play
from tests.fakes.thread_files import export


def said(rows: Rows, *contents: str) -> None:
    rows.thread("t1", title="Build it")
    for content in contents:
        rows.message("user", {"content": content})


def test_what_was_found_is_marked_and_nothing_of_it_reaches_the_terminal_raw(rows: Rows) -> None:
    said(rows, "make \x1b[31mred\u202e it")

    shown = text_of(rows, "threads", "search", "red")

    assert shown.splitlines()[1] == "  make \\x1b[31m»red«\\u202e it"
    assert shown.startswith("t1  2026-11-28")
    assert shown.splitlines()[0].endswith("  user  Build it")


def test_the_limit_says_when_there_is_more(rows: Rows) -> None:
    said(rows, "red one", "red two", "red three")

    shown = text_of(rows, "threads", "search", "red", "--limit", "2").splitlines()

    assert [line for line in shown if "»" in line] == ["  »red« three", "  »red« two"]
    assert shown[-1] == "… and more; --limit 4 shows them"


def test_a_checkpoint_that_two_threads_have_is_named_with_its_thread(tmp_path: Path) -> None:
    play(tmp_path / "agent.db", "so red")
    (tmp_path / "thread.json").write_text(export(tmp_path / "agent.db", "thread-1"))
    run("threads", "import", str(tmp_path / "thread.json"), "--as", "mine", "--db", str(tmp_path / "agent.db"))

    shown = run("threads", "search", "red", "--db", str(tmp_path / "agent.db")).stdout

    resumed = [line.rpartition(" ")[2].partition(":")[0] for line in shown.splitlines() if " resume " in line]
    assert sorted(resumed) == ["mine", "thread-1"]


def test_json_has_the_documented_shape(rows: Rows) -> None:
    said(rows, "so red")

    assert json_of(rows, "threads", "search", "red") == {
        "query": "red",
        "hits": [
            {
                "thread_id": "t1",
                "title": "Build it",
                "seq": 1,
                "message_id": "m1",
                "role": "user",
                "at": START,
                "checkpoint_id": None,
                "snippet": "so red",
                "marks": [[3, 6]],
            }
        ],
        "more": False,
    }


def test_nothing_found_is_said_also_where_there_is_no_database(rows: Rows, tmp_path: Path) -> None:
    said(rows)
    missing = str(tmp_path / "none.db")

    assert text_of(rows, "threads", "search", "red") == "No message holds “red”.\n"
    assert run("threads", "search", "red", "--db", missing).stdout == "No message holds “red”.\n"
    assert json.loads(run("threads", "search", "red", "--db", missing, "--json").stdout)["hits"] == []


def test_blank_words_are_refused(rows: Rows) -> None:
    done = run("threads", "search", " ", "--db", str(rows.path))

    assert (done.exit_code, "is blank" in str(done.exception)) == (1, True)
