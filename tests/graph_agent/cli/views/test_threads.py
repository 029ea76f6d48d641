import socket

import pytest

from graph_agent.cli.views.table import format_time
from tests.fakes.database_rows import START, Rows, record_of
from tests.fakes.light_commands import text_of

_EVIL = "[red]\x1b[31mboo\u202e\u200b[/red]"


def test_the_table_is_aligned_also_with_wide_characters_and_cut_at_the_width_asked_for(rows: Rows) -> None:
    title = "修复 the build, which is broken since the last change of the compiler"
    rows.thread("日本語", title=title, updated_at="2")
    rows.thread("abc", title="short", updated_at="1")

    lines = text_of(rows, "threads", "list", COLUMNS="60").splitlines()

    assert lines == [
        "THREAD  STATUS  UPDATED  TURNS  OPEN  TITLE",
        "日本語  idle    2        0      -     修复 the build, which…",
        "abc     idle    1        0      -     short",
    ]


def test_nothing_is_cut_off_in_a_pipe(rows: Rows) -> None:
    rows.thread(title="x" * 300)

    assert "x" * 300 in text_of(rows, "threads", "list")


def test_open_calls_are_counted_in_words(rows: Rows) -> None:
    rows.thread(next_nodes=("human_approval",), updated_at="1")
    rows.call(record_of("awaiting_approval"))
    rows.call(record_of("interrupted", "call_b"))

    assert "1 to approve, 1 interrupted" in text_of(rows, "threads", "list")


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
def test_text_from_outside_is_printed_literally_and_cannot_command_the_terminal(
    rows: Rows, command: list[str]
) -> None:
    rows.thread(next_nodes=("human_approval",), title=_EVIL)
    preview = {"text": f"{_EVIL}\nx\ry"}
    rows.call({**record_of("awaiting_approval", display=_EVIL, reason=_EVIL, preview=preview), "tool_name": _EVIL})
    rows.message(_EVIL, {"content": _EVIL, "tool_calls": [{"name": _EVIL, "args": {_EVIL: _EVIL}, "id": _EVIL}]})

    output = text_of(rows, *command)

    assert "[red]" in output
    assert {character for character in output if not character.isprintable()} <= {"\n"}


def test_a_thread_tells_who_died_what_is_open_and_what_was_said(rows: Rows) -> None:
    rows.thread(next_nodes=("tool_execution",), title="Build it", turns=1, workspace="/w", model="m")
    rows.call(record_of("executing", display="make all"))
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
        f"held by    nobody; process 4711 on {socket.gethostname()} died holding it",
        "workspace  /w",
        "model      m",
        "mode       default",
        f"created    {format_time(START)}",
        f"updated    {format_time(START)}",
        "turns      1",
        "tokens     12 in, 3 out, cost unknown",
        "calls      1 interrupted",
        "",
        "CALL    STATUS       RISK    TOOL  TRY  WHEN  ABOUT",
        "call_a  interrupted  medium  bash  1          make all (never_started)",
        "",
        "user",
        "  build",
        "assistant",
        '  → bash call_a {"command": "make"}',
    ]


def test_a_living_holder_is_named(rows: Rows) -> None:
    rows.thread()
    rows.lease(process_started="theirs", host="elsewhere", pid=7)

    assert f"held by  process 7 on elsewhere since {format_time(START)}" in text_of(rows, "threads", "show", "t1")


def test_of_a_long_conversation_the_end_is_shown_and_all_of_it_on_demand(rows: Rows) -> None:
    rows.thread()
    for number in range(25):
        rows.message("user", {"content": f"message {number}."})

    short = text_of(rows, "threads", "show", "t1")
    full = text_of(rows, "threads", "show", "t1", "--full")

    assert "… 5 earlier messages; --full shows them\nuser\n  message 5.\n" in short
    assert ("message 4." in short, "message 0." in full, "earlier" in full) == (False, True, False)
