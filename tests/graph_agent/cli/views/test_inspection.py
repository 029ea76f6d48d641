import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START as GRAPH_START
from langgraph.graph import StateGraph
from langgraph.types import interrupt

from graph_agent.app.reader import read_database
from graph_agent.calls import NEW_MESSAGE
from graph_agent.cli.views import inspection
from graph_agent.cli.views.inspection import find_value, watch_state
from graph_agent.errors import UnknownId, UsageError
from graph_agent.graph.state import AgentState
from graph_agent.ports.background import process_started
from graph_agent.ports.usage import usage_report
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database
from tests.fakes import light_program
from tests.fakes.database_rows import record_of
from tests.fakes.light_commands import run
from tests.fakes.played_thread import play
from tests.fakes.scripted_model import calls, text
from tests.graph_agent.cli.commands import json_of, text_of, type_command


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("calls.functions.bash:0.status", "pending"),
        ("nothing", "no 'nothing' there, only the keys messages, calls"),
        ("messages.7", "no '7' there, only a list of 1"),
        ("messages.0.x", "no 'x' there, only a plain value"),
    ],
    ids=["a key with dots", "an unknown key", "an index out of range", "below a plain value"],
)
def test_a_path_leads_to_a_value_or_says_what_is_there(path: str, found: str) -> None:
    state = {"values": {"messages": ["go"], "calls": {"functions.bash:0": {"status": "pending"}}}}

    try:
        shown = find_value(state, path)
    except UsageError as error:
        shown = str(error)

    assert found in shown


@pytest.fixture
def path(tmp_path: Path) -> Path:
    play(tmp_path / "a.db", "go", replies=(calls(("w", "write_a")),))
    return tmp_path / "a.db"


def start_watching(path: Path, *options: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", light_program.__name__, "inspect", "--db", str(path), "--watch", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_watching_prints_each_change_locks_nothing_and_ends_with_ctrl_c(path: Path, tmp_path: Path) -> None:
    process = start_watching(path, "--json")
    assert process.stdout is not None

    states = [json.loads(process.stdout.readline())]
    with closing(sqlite3.connect(path, timeout=5, isolation_level=None)) as connection:
        connection.execute("DELETE FROM writes WHERE channel = '__interrupt__'")
        is_blocked, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    states.append(json.loads(process.stdout.readline()))
    play(tmp_path / "other.db", "go", replies=(text("done"),))
    for ending in ("-wal", "-shm"):
        path.with_name(f"{path.name}{ending}").unlink(missing_ok=True)
    (tmp_path / "other.db").replace(path)
    states.append(json.loads(process.stdout.readline()))
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=60)

    shown = [(state["status"], len(state["interrupts"])) for state in states]
    assert shown == [("waiting", 1), ("waiting", 0), ("idle", 0)]
    assert (is_blocked, rest, process.returncode) == (0, ("", ""), 130)


@pytest.mark.slow
def test_watching_ends_when_stdout_is_closed(path: Path) -> None:
    process = start_watching(path)
    assert process.stdout is not None
    process.stdout.readline()

    process.stdout.close()
    code = process.wait(timeout=60)

    assert process.stderr is not None
    assert (process.stderr.read(), code) == ("", 0)
    process.stderr.close()


Watch = Callable[..., list[str]]


@pytest.fixture
def watch(path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Watch:
    """Watches the thread until it has a status, calling `meanwhile` in place of each wait; the printed statuses."""

    def watch(until: str | None, meanwhile: Callable[[], object] = lambda: None) -> list[str]:
        monkeypatch.setattr(time, "sleep", lambda _seconds: meanwhile())
        with suppress(KeyboardInterrupt):
            watch_state(path, "", None, until=until, as_json=True, full=False)
        return [json.loads(line)["status"] for line in capsys.readouterr().out.splitlines()]

    return watch


def test_watching_ends_with_the_status_of_until(watch: Watch) -> None:
    assert watch("waiting") == ["waiting"]


def test_watching_a_deleted_thread_is_an_error(path: Path, watch: Watch) -> None:
    def delete() -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("DELETE FROM threads")

    with pytest.raises(UnknownId, match="was deleted"):
        watch("idle", delete)


def test_watching_redraws_a_screen_that_fits(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection, "supports_cursor", lambda: True)
    monkeypatch.setattr(inspection, "_state_lines", lambda *_, **__: [f"line {number}" for number in range(100)])
    monkeypatch.setenv("LINES", "10")

    watch_state(path, "", None, until="waiting", as_json=False, full=False)

    shown = capsys.readouterr().out
    assert shown.startswith("\x1b[?7l\x1b[H\x1b[2J")
    assert shown.splitlines()[1:9] == [*(f"line {number}" for number in range(1, 8)), "… 92 more lines"]


def test_an_unreadable_database_is_reported_once_and_waited_for(
    path: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, waits, errors = path.read_bytes(), iter(range(6)), StringIO()

    def change() -> None:
        match next(waits):
            case 0:
                path.write_bytes(b"no database " * 10)
            case 3:
                path.write_bytes(content)
            case 5:
                raise KeyboardInterrupt

    path.with_name(f"{path.name}-wal").unlink(missing_ok=True)
    monkeypatch.setattr(sys, "stderr", errors)

    assert watch(None, change) == ["waiting"] * 2
    assert errors.getvalue().count("is not a database") == 1


def test_the_death_of_the_holding_process_is_a_change(path: Path, watch: Watch) -> None:
    holder = subprocess.Popen(["sleep", "60"])
    with read_database(path) as reader:
        [thread] = reader.threads()
        asked = next(entry for entry in reader.history(thread.thread_id) if entry.node == "reasoning")
    with closing(sqlite3.connect(path)) as connection, connection:
        lease = (holder.pid, process_started(holder.pid))
        connection.execute("UPDATE leases SET ended_at = NULL, pid = ?, process_started = ?", lease)
        head = (asked.checkpoint_id, '["tool_routing"]')
        connection.execute("UPDATE threads SET checkpoint_id = ?, next_nodes = ?", head)
    connection.close()
    os.utime(path, (0, 0))

    def kill() -> None:
        holder.kill()
        holder.wait()

    assert watch("resumable", kill) == ["running", "resumable"]


_CONFIG: RunnableConfig = {"configurable": {"thread_id": "t1"}}
_RECORD = record_of("awaiting_approval", asked_at="then", summary="make \x1b[2J")


def _reasoning(state: AgentState) -> Any:
    tool_calls: list[Any] = [{"name": "bash", "args": {"command": "make"}, "id": "call_a"}]
    return {
        "messages": [AIMessage("I shall build [red]it\x1b[0m", id="ai1", tool_calls=tool_calls)],
        "calls": {NEW_MESSAGE: {}, "call_a": _RECORD},
        "usage": {"input_tokens": 5},
        "todo": [{"content": "build\u202e", "status": "pending"}],
    }


def _human_approval(state: AgentState) -> Any:
    interrupt({"approve": [{"call_id": "call_a"}], "recover": []})


@pytest.fixture
async def database(tmp_path: Path) -> Path:
    builder: Any = StateGraph(AgentState)
    builder.add_node("reasoning", _reasoning)
    builder.add_node("human_approval", _human_approval)
    builder.add_edge(GRAPH_START, "reasoning")
    builder.add_edge("reasoning", "human_approval")
    async with await Database.open(tmp_path / "graph-agent.db") as opened:
        graph = builder.compile(checkpointer=CheckpointSaver(opened))
        await graph.ainvoke({"messages": [HumanMessage("go", id="h1")]}, _CONFIG, durability="sync")
    return tmp_path / "graph-agent.db"


def _run(database: Path, *arguments: str) -> str:
    result = run("inspect", *arguments, "--db", str(database))
    assert result.exit_code == 0, result.exception
    return result.stdout


def test_the_state_has_the_documented_shape(database: Path) -> None:
    whole = json.loads(_run(database, "t1", "--json"))

    [task] = whole["tasks"]
    [asked] = whole["interrupts"]
    values = whole["values"]
    assert list(whole)[:10] == [
        *("thread_id", "checkpoint_id", "status", "next", "tasks"),
        *("interrupts", "pending_writes", "calls", "usage", "values"),
    ]
    assert (whole["thread_id"], whole["status"], whole["next"]) == ("t1", "waiting", ["human_approval"])
    assert (task["name"], task["status"]) == ("human_approval", "interrupted")
    assert asked["value"] == {"approve": [{"call_id": "call_a"}], "recover": []}
    assert [write["channel"] for write in whole["pending_writes"]] == ["__interrupt__"]
    assert whole["calls"] == [{"thread_id": "t1", **_RECORD}]
    assert whole["usage"] == usage_report({"input_tokens": 5})
    assert [message["content"] for message in values["messages"]] == ["go", "I shall build [red]it\x1b[0m"]
    assert (values["calls"], values["todo"]) == (
        {"call_a": _RECORD},
        [{"content": "build\u202e", "status": "pending"}],
    )


def test_an_older_checkpoint_is_shown_as_it_was(database: Path) -> None:
    head = json.loads(_run(database, "--json"))

    older = json.loads(_run(database, head["parent_id"], "--json"))

    assert (older["next"], older["status"], older["is_head"]) == (["reasoning"], "resumable", False)
    assert [message["content"] for message in older["values"]["messages"]] == ["go"]


def test_the_text_is_escaped_and_complete_with_full(database: Path) -> None:
    shown = _run(database, "t1", "--full")

    for part in (
        "status      waiting",
        "next        human_approval",
        "  human_approval  interrupted",
        '    asks {"approve": [{"call_id": "call_a"}], "recover": []}',
        "make \\x1b[2J",
        "todo\n  [ ] build\\u202e",
        "I shall build [red]it\\x1b[0m",
        '→ bash call_a {"command": "make"}',
    ):
        assert part in shown
    assert {character for character in shown if not character.isprintable()} <= {"\n"}


def test_no_line_is_longer_than_the_screen(database: Path) -> None:
    lines = run("inspect", "t1", "--db", str(database), COLUMNS="60").stdout.splitlines()

    assert max(map(len, lines)) == 60


@pytest.mark.parametrize(
    ("piece", "text"),
    [
        ("messages.0.content", "go\n"),
        ("messages.-1.content", "I shall build [red]it\\x1b[0m\n"),
        ("calls.call_a.arguments", '{\n  "command": "make"\n}\n'),
        ("tasks.0.name", "human_approval\n"),
        ("pending_tool_calls.0.call_id", "call_a\n"),
        ("usage.input_tokens", "5\n"),
    ],
)
def test_one_value_can_be_printed_by_its_path(database: Path, piece: str, text: str) -> None:
    assert _run(database, "t1", "--path", piece) == text


def test_a_value_can_be_printed_as_json(database: Path) -> None:
    assert json.loads(_run(database, "t1", "--path", "todo.0.content", "--json")) == "build\u202e"


def test_watching_refuses_an_unknown_status_and_a_path(database: Path) -> None:
    unknown = run("inspect", "t1", "--db", str(database), "--until", "tired")
    path = run("inspect", "t1", "--db", str(database), "--watch", "--path", "messages")

    assert "'tired'. Choose one of: interrupted" in str(unknown.exception)
    assert (path.exit_code, "--path" in path.stderr) == (2, True)


@pytest.fixture
def turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The last checkpoint of each turn of a thread in the database of the environment."""
    monkeypatch.setenv("GRAPH_AGENT_DB", str(tmp_path / "a.db"))
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.chdir(tmp_path)
    return play(tmp_path / "a.db", "one", "two \x1b[2J", replies=(text("a"), text("b")))


def test_two_checkpoints_differ_in_the_messages_between_them(turns: list[str]) -> None:
    first, second = turns

    there, back = json_of("diff", first, second)["changes"], json_of("diff", second, first)["changes"]

    messages = [change for change in there if change["path"].startswith("messages.")]
    assert [(change["op"], change["old"], change["new"]["content"]) for change in messages] == [
        ("added", None, "two \x1b[2J"),
        ("added", None, "b"),
    ]
    assert [(change["path"], change["op"]) for change in back if change["path"].startswith("messages.")] == [
        (change["path"], "removed") for change in messages
    ]
    assert text_of("diff", second, second) == "No differences.\n"
    assert isinstance(type_command("diff", "no-such", "nor-this").exception, UnknownId)


def test_a_diff_shows_old_above_new_and_is_escaped(turns: list[str]) -> None:
    lines = text_of("diff", *turns).splitlines()

    assert [line for line in lines if line.startswith(("- usage.requests", "+ usage.requests"))] == [
        "- usage.requests: 1",
        "+ usage.requests: 2",
    ]
    assert not any("\x1b" in line for line in lines)


def test_history_lists_checkpoints_newest_first_with_ids_that_other_commands_accept(turns: list[str]) -> None:
    first, second = turns

    listed = [entry["checkpoint_id"] for entry in json_of("history", "thread-1")["checkpoints"]]
    headings, newest, *_ = text_of("history", "thread-1").splitlines()
    *rows, omitted = text_of("history", "thread-1", "--last", "1").splitlines()

    assert (listed[0], first in listed, type_command("inspect", listed[-1]).exit_code) == (second, True, 0)
    assert headings.split() == ["CHECKPOINT", "WHEN", "STEP", "NODE", "CALLS", "CHANGED"]
    assert (newest.startswith(f"{second[-8:]} *  "), "reasoning" in newest) == (True, True)
    assert (len(rows), rows[1].split()[0], omitted.startswith("… ")) == (2, second[-8:], True)
