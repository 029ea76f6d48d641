import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest
from typer.testing import CliRunner, Result

from tests.graph_agent.cli.light import app
from tests.graph_agent.inspect.rows import START, Rows, record_of

_ROOT = Path(__file__).parents[3]
_EVIL = "[red]\x1b[31mboo\u202e\u200b[/red]"


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Rows]:
    filled = Rows(tmp_path / "graph-agent.db")
    yield filled
    filled.close()


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setenv("TZ", "UTC")


def _run(rows: Rows, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--db", str(rows.path)])


def _json(rows: Rows, *arguments: str) -> Any:
    result = _run(rows, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def _asking(rows: Rows, thread_id: str = "t1", **fields: Any) -> None:
    rows.thread(thread_id, next_nodes=("human_approval",), title="Build it", checkpoint_id="c1")
    asked = {"asked_at": START, "reason": "runs a command", "display": "make", "preview": {"text": "$ make"}}
    rows.call(record_of("awaiting_approval", **{**asked, **fields}), thread_id)


def test_threads_list_has_the_documented_shape(rows: Rows) -> None:
    _asking(rows)

    [thread] = _json(rows, "threads", "list")["threads"]

    assert thread == {
        "thread_id": "t1",
        "title": "Build it",
        "workspace": "",
        "status": "awaiting_approval",
        "updated_at": START,
        "checkpoint_id": "c1",
        "turns": 0,
        "pending_approvals": 1,
        "interrupted_calls": 0,
        "model": "",
        "mode": "default",
        "created_at": START,
        "outcome": "",
        "parent_thread": None,
        "queued_messages": 0,
        "held_by": None,
    }


def test_approvals_list_has_the_documented_shape_and_keeps_answered_ones_apart(rows: Rows) -> None:
    _asking(rows)
    _asking(rows, "t2")
    rows.call(record_of("awaiting_approval", "call_b"))
    rows.decision("approve", call_id="call_b")

    listed = _json(rows, "approvals", "list")

    assert listed["approvals"][0] == {
        "call_id": "t1:call_a",
        "thread_id": "t1",
        "tool_name": "bash",
        "arguments": {"command": "make"},
        "risk": "medium",
        "reason": "runs a command",
        "asked_at": START,
        "preview": {"text": "$ make"},
        "attempt": 1,
        "kind": None,
        "display": "make",
        "digest": "d1",
    }
    assert [item["call_id"] for item in listed["approvals"]] == ["t1:call_a", "t2:call_a"]
    assert [(item["call_id"], item["answered_by"]) for item in listed["answered"]] == [("call_b", "cli pid 7")]


def test_calls_are_records_with_their_thread_and_can_be_filtered(rows: Rows) -> None:
    rows.thread(next_nodes=("tool_execution",))
    rows.call(record_of("executing"))
    rows.call(record_of("success", "call_b", tool_name="grep"))

    assert _json(rows, "calls")["calls"] == [
        {
            "thread_id": "t1",
            **record_of("interrupted", reason="never_started", begun=False, stored_status="executing"),
        },
        {"thread_id": "t1", **record_of("success", "call_b", tool_name="grep")},
    ]
    assert [call["call_id"] for call in _json(rows, "calls", "--status", "interrupted")["calls"]] == ["call_a"]
    assert [call["call_id"] for call in _json(rows, "calls", "t1", "--tool", "grep")["calls"]] == ["call_b"]
    assert [call["call_id"] for call in _json(rows, "calls", "call_b")["calls"]] == ["call_b"]


def test_a_status_that_does_not_exist_is_named_with_those_that_do(rows: Rows) -> None:
    result = _run(rows, "calls", "--status", "broken")

    assert "'broken' is not a status of a call; use one of: pending, awaiting_approval" in str(result.exception)


def test_without_a_database_lists_are_empty_and_nothing_is_created(tmp_path: Path) -> None:
    missing = tmp_path / "none.db"
    runner = CliRunner()

    printed = [
        runner.invoke(app, [*command, "--db", str(missing)]).stdout
        for command in (["threads", "list"], ["calls"], ["approvals", "list"])
    ]
    as_json = [
        json.loads(runner.invoke(app, [*command, "--db", str(missing), "--json"]).stdout)
        for command in (["threads", "list"], ["calls"], ["approvals", "list"])
    ]

    assert printed == [
        "No threads yet. `graph-agent chat` starts the first.\n",
        "No calls.\n",
        "Nothing waits for an approval.\n",
    ]
    assert as_json == [{"threads": []}, {"calls": []}, {"approvals": [], "answered": []}]
    assert list(tmp_path.iterdir()) == []


def test_an_approval_is_given_once_and_the_second_answer_exits_with_1(rows: Rows) -> None:
    _asking(rows)

    given = _json(rows, "approvals", "approve", "call_a")
    late = _run(rows, "approvals", "reject", "call_a", "--reason", "no", "--json")

    assert given == {
        "call_id": "call_a",
        "thread_id": "t1",
        "kind": "approve",
        "accepted": True,
        "by": f"cli pid {os.getpid()}",
        "at": given["at"],
    }
    assert (late.exit_code, json.loads(late.stdout)) == (1, {**given, "accepted": False})
    assert "was answered before: approve by cli pid" in _run(rows, "approvals", "reject", "call_a").stdout
    assert _json(rows, "approvals", "list")["approvals"] == []


def test_a_rejection_keeps_the_words_for_the_model(rows: Rows) -> None:
    _asking(rows)

    _run(rows, "approvals", "reject", "call_a", "--reason", "use ninja")

    assert [item["answer"] for item in _json(rows, "approvals", "list")["answered"]] == ["reject"]
    listed = _run(rows, "approvals", "list").stdout
    assert f"call_a was answered: reject by cli pid {os.getpid()}" in listed


def test_tables_are_aligned_also_with_wide_characters_and_cut_at_the_width_asked_for(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows.thread(
        "日本語", title="修复 the build, which is broken since the last change of the compiler", updated_at="2"
    )
    rows.thread("abc", title="short", updated_at="1")
    monkeypatch.setenv("COLUMNS", "60")

    lines = _run(rows, "threads", "list").stdout.splitlines()

    assert lines == [
        "THREAD  STATUS   UPDATED  TURNS  OPEN  TITLE",
        "日本語  at_rest  2        0      -     修复 the build, whic…",
        "abc     at_rest  1        0      -     short",
    ]


def test_nothing_is_cut_off_in_a_pipe(rows: Rows) -> None:
    rows.thread(title="x" * 300)

    assert "x" * 300 in _run(rows, "threads", "list").stdout


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
    hostile: dict[str, Any] = {
        "display": _EVIL,
        "reason": _EVIL,
        "preview": {"text": f"{_EVIL}\nx\ry"},
        "tool_name": _EVIL,
    }
    rows.call(record_of("awaiting_approval", **hostile))
    body = json.dumps({"content": _EVIL, "tool_calls": [{"name": _EVIL, "args": {_EVIL: _EVIL}, "id": _EVIL}]})
    rows.execute(
        "INSERT INTO transcript (thread_id, seq, message_id, role, body, checkpoint_id, at)"
        " VALUES ('t1', 1, 'm1', ?, ?, 'c1', 'then')",
        _EVIL,
        body,
    )

    output = _run(rows, *command).stdout

    assert "[red]" in output
    assert {character for character in output if not character.isprintable()} <= {"\n"}


def test_threads_show_tells_who_died_what_is_open_and_what_was_said(rows: Rows) -> None:
    rows.thread(next_nodes=("tool_execution",), title="Build it", turns=1, workspace="/w", model="m")
    rows.call(record_of("executing", display="make all"))
    rows.lease(process_started="0", pid=4711, host=os.uname().nodename)
    for seq, (role, body) in enumerate(
        [
            ("user", {"content": "build"}),
            (
                "assistant",
                {
                    "content": "",
                    "tool_calls": [{"name": "bash", "args": {"command": "make"}, "id": "call_a"}],
                    "usage": {"input_tokens": 12, "output_tokens": 3},
                },
            ),
        ],
        start=1,
    ):
        rows.execute(
            "INSERT INTO transcript (thread_id, seq, message_id, role, body, checkpoint_id, at)"
            " VALUES ('t1', ?, ?, ?, ?, 'c1', 'then')",
            seq,
            f"m{seq}",
            role,
            json.dumps(body),
        )

    shown = _run(rows, "threads", "show", "t1").stdout.splitlines()

    assert shown == [
        "thread     t1",
        "title      Build it",
        "status     interrupted",
        f"held by    nobody; process 4711 on {os.uname().nodename} died holding it",
        "workspace  /w",
        "model      m",
        "mode       default",
        "created    2026-11-28 10:00:00",
        "updated    2026-11-28 10:00:00",
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


def test_on_a_terminal_statuses_are_coloured_unless_colour_is_declined(rows: Rows) -> None:
    _asking(rows)

    def shown(**environment: str) -> str:
        done: Any = pexpect.run(
            f"{sys.executable} -m tests.graph_agent.cli.light threads list --db {rows.path}",
            cwd=str(_ROOT),
            env={**os.environ, "TERM": "xterm", **environment},
            withexitstatus=True,
        )
        assert done[1] == 0, done
        return str(done[0].decode())

    assert "\x1b[33mawaiting_approval\x1b[0m" in shown(NO_COLOR="")
    assert "\x1b" not in shown(NO_COLOR="1")
    assert "\x1b" not in shown(TERM="dumb")


def test_an_output_that_knows_no_unicode_gets_escapes_instead_of_a_failure(rows: Rows) -> None:
    rows.thread(title="日本")

    done = subprocess.run(
        [sys.executable, "-m", "tests.graph_agent.cli.light", "threads", "list", "--db", rows.path],
        cwd=_ROOT,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        capture_output=True,
        check=True,
    )

    assert b"\\u65e5\\u672c" in done.stdout


@pytest.mark.parametrize("command", [["threads", "show"], ["inspect"]])
def test_no_id_means_the_newest_thread_here_or_of_the_file_that_is_named(
    rows: Rows, command: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rows.thread("elsewhere", workspace="/elsewhere")
    monkeypatch.setenv("GRAPH_AGENT_DB", str(rows.path))
    monkeypatch.chdir(tmp_path)

    here = CliRunner().invoke(app, command)
    named = _run(rows, *command)

    assert f"there is no thread in {tmp_path} yet" in str(here.exception)
    assert "elsewhere" in (named.stdout or str(named.exception))
