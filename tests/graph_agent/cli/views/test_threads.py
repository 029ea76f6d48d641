import json
import re
import socket
from pathlib import Path

import pytest

from graph_agent.cli.views.table import format_time
from graph_agent.config.paths import blob_dir
from graph_agent.storage.blobs import FileBlobs
from tests.fakes.database_rows import START, Rows, record_of
from tests.fakes.light_commands import asking, json_of, run, text_of
from tests.fakes.played_thread import play
from tests.fakes.thread_files import export
from tools.files import sha256_hex

_EVIL = "[red]\x1b[31mboo\u202e\u200b[/red]"


def test_the_list_is_newest_first_aligned_with_wide_characters_and_cut_at_the_width(rows: Rows) -> None:
    title = "修复 the build, which is broken since the last change of the compiler"
    rows.thread("abc", title="short", updated_at="1")
    rows.thread("日本語", title=title, updated_at="3")
    rows.thread("def", updated_at="2", turns=1)

    assert text_of(rows, "threads", "list", COLUMNS="60").splitlines() == [
        "THREAD  STATUS  PENDING  UPDATED  TITLE",
        "日本語  idle    -        3        修复 the build, which is …",
        "def     idle    -        2",
        "abc     idle    -        1        short",
        "… shortened; in full: `graph-agent threads show THREAD`",
    ]


def test_in_a_pipe_nothing_is_cut_and_open_calls_are_counted(rows: Rows) -> None:
    rows.thread(next_nodes=("human_approval",), title="x" * 300)
    rows.call(record_of("awaiting_approval"))
    rows.call(record_of("interrupted", "call_b"))

    [_, line] = text_of(rows, "threads", "list").splitlines()

    assert ("1 to approve, 1 interrupted" in line, "x" * 300 in line) == (True, True)


@pytest.mark.parametrize(
    "command",
    [
        ["threads", "list"],
        ["threads", "show", "t1"],
        ["calls"],
        ["approvals", "list"],
        ["threads", "list", "--json"],
    ],
)
def test_foreign_text_is_printed_literally_and_cannot_control_the_terminal(rows: Rows, command: list[str]) -> None:
    rows.thread(next_nodes=("human_approval",), title=_EVIL)
    preview = {"text": f"{_EVIL}\nx\ry"}
    rows.call({**record_of("awaiting_approval", summary=_EVIL, reason=_EVIL, preview=preview), "tool_name": _EVIL})
    rows.message(_EVIL, {"content": _EVIL, "tool_calls": [{"name": _EVIL, "args": {_EVIL: _EVIL}, "id": _EVIL}]})

    output = text_of(rows, *command)

    assert "[red]" in output
    assert {character for character in output if not character.isprintable()} <= {"\n"}


def test_a_thread_is_shown_with_its_holder_open_calls_and_messages(rows: Rows) -> None:
    rows.thread(next_nodes=("tool_execution",), title="Build it", turns=1, workspace="/w", model="m")
    rows.call(record_of("executing", summary="make all"))
    rows.lease(process_started="0", pid=4711)
    rows.message("user", {"content": "build"})
    tool_calls = [{"name": "bash", "args": {"command": "make"}, "id": "call_a"}]
    usage = {"input_tokens": 12, "output_tokens": 3}
    rows.message("assistant", {"content": "", "tool_calls": tool_calls, "usage": usage})

    shown = text_of(rows, "threads", "show", "t1").splitlines()

    assert shown == [
        "thread     t1",
        "title      Build it",
        "status     interrupted",
        f"held by    nobody; the last process (pid 4711 on {socket.gethostname()}) ended unexpectedly",
        "workspace  /w",
        "model      m",
        "mode       default",
        f"created    {format_time(START)}",
        f"updated    {format_time(START)}",
        "turns      1",
        "tokens     12 in, 3 out, cost unknown",
        "calls      1 interrupted",
        "",
        "CALL    STATUS       RISK    TOOL  ATTEMPT  WHEN  SUMMARY",
        "call_a  interrupted  medium  bash  1              make all (never started)",
        "",
        "user",
        "  build",
        "assistant",
        '  → bash call_a {"command": "make"}',
    ]


def test_the_process_that_holds_a_thread_is_shown(rows: Rows) -> None:
    rows.thread()
    rows.lease(process_started="theirs", host="elsewhere", pid=7)

    assert f"held by  process 7 on elsewhere since {format_time(START)}" in text_of(rows, "threads", "show", "t1")


def test_the_end_of_a_long_conversation_is_shown_and_all_of_it_with_full(rows: Rows) -> None:
    rows.thread()
    for number in range(25):
        rows.message("user", {"content": f"message {number}."})

    short = text_of(rows, "threads", "show", "t1")
    full = text_of(rows, "threads", "show", "t1", "--full")

    assert "… 5 earlier messages; --full shows them\nuser\n  message 5.\n" in short
    assert ("message 4." in short, "message 0." in full, "earlier" in full) == (False, True, False)


def add_messages(rows: Rows, *contents: str) -> None:
    rows.thread("t1", title="Build it")
    for content in contents:
        rows.message("user", {"content": content})


def test_a_search_hit_is_marked_and_escaped(rows: Rows) -> None:
    add_messages(rows, "make \x1b[31mred\u202e it")

    shown = text_of(rows, "threads", "search", "red")

    assert shown.splitlines()[1] == "  make \\x1b[31m»red«\\u202e it"
    assert re.match(r"t1  \d+ d ago  user", shown)
    assert shown.splitlines()[0].endswith("  user  Build it")


def test_the_limit_says_when_there_is_more(rows: Rows) -> None:
    add_messages(rows, "red one", "red two", "red three")

    shown = text_of(rows, "threads", "search", "red", "--limit", "2").splitlines()

    assert [line for line in shown if "»" in line] == ["  »red« three", "  »red« two"]
    assert shown[-1] == "… more results; show them with --limit 4"


def test_a_checkpoint_that_two_threads_have_is_named_with_its_thread(tmp_path: Path) -> None:
    play(tmp_path / "agent.db", "so red")
    (tmp_path / "thread.json").write_text(export(tmp_path / "agent.db", "thread-1"))
    run("threads", "import", str(tmp_path / "thread.json"), "--as", "mine", "--db", str(tmp_path / "agent.db"))

    shown = run("threads", "search", "red", "--db", str(tmp_path / "agent.db")).stdout

    resumed = [line.rpartition(" ")[2].partition(":")[0] for line in shown.splitlines() if " resume " in line]
    assert sorted(resumed) == ["mine", "thread-1"]


def test_the_search_result_has_the_documented_shape(rows: Rows) -> None:
    add_messages(rows, "so red")

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


def test_a_search_without_results_says_so_also_without_a_database(rows: Rows, tmp_path: Path) -> None:
    add_messages(rows)
    missing = str(tmp_path / "none.db")

    assert text_of(rows, "threads", "search", "red") == "No message contains “red”.\n"
    assert run("threads", "search", "red", "--db", missing).stdout == "No message contains “red”.\n"
    assert json.loads(run("threads", "search", "red", "--db", missing, "--json").stdout)["hits"] == []


def changed(rows: Rows, workspace: Path) -> None:
    workspace.mkdir()
    (workspace / "a.txt").write_text("mine \x1b[2J\n")
    rows.thread(workspace=str(workspace))
    before = FileBlobs(blob_dir(rows.path)).put(b"old\n")
    path = str(workspace.resolve() / "a.txt")
    before_sha256 = sha256_hex(b"old")
    intent = (
        f'{{"path": "{path}", "before_sha256": "{before_sha256}", "after_sha256": "x", "before_blob": "{before}"}}'
    )
    rows.journal("success", {"status": "success", "output": ""}, intent=intent)


def test_a_diff_marks_changes_by_others_and_is_escaped(rows: Rows, tmp_path: Path) -> None:
    changed(rows, tmp_path / "ws")

    assert text_of(rows, "threads", "diff", "t1").splitlines() == [
        "# a.txt: it was changed by somebody else since",
        "--- a.txt",
        "+++ a.txt",
        "@@ -1 +1 @@",
        "-old",
        "+mine \\x1b[2J",
    ]
    [file] = json_of(rows, "threads", "diff", "t1")["files"]
    assert (file["path"], file["status"], file["added"], file["removed"]) == ("a.txt", "modified", 1, 1)


def test_a_thread_without_changes_has_no_diff(rows: Rows, tmp_path: Path) -> None:
    rows.thread(workspace=str(tmp_path))

    assert text_of(rows, "threads", "diff", "t1") == "No files changed.\n"


def test_files_changed_by_commands_are_named_without_a_diff(rows: Rows, tmp_path: Path) -> None:
    changed(rows, tmp_path / "ws")
    seen = {"changed_files": ["a.txt", "b\x1b.txt"], "changed_files_more": 3}
    rows.call(record_of("success", "c2", tool_name="bash", arguments={"command": "make\nmore"}, metadata=seen))
    rows.journal("success", {"status": "success", "output": ""}, call_id="c2")

    assert text_of(rows, "threads", "diff", "t1").splitlines()[:2] == [
        "# not shown: a.txt, b\\x1b.txt and 3 more: changed by $ make",
        "# a.txt: it was changed by a command of this thread since",
    ]


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


def test_without_a_database_the_list_is_empty_and_nothing_is_created(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.db")

    printed = run("threads", "list", "--db", missing)
    as_json = run("threads", "list", "--db", missing, "--json")

    assert (printed.exit_code, printed.stdout) == (0, "No threads yet. Start one with: graph-agent chat\n")
    assert json.loads(as_json.stdout) == {"threads": []}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [["threads", "show"], ["inspect"]])
def test_no_id_means_the_newest_thread_of_the_folder_or_the_named_database(
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


def test_an_unknown_thread_and_a_blank_search_are_errors(rows: Rows) -> None:
    assert "'nothing'" in str(run("threads", "show", "nothing", "--db", str(rows.path)).exception)
    assert "is blank" in str(run("threads", "search", " ", "--db", str(rows.path)).exception)
    assert text_of(rows, "threads", "list") == "No threads yet. Start one with: graph-agent chat\n"
