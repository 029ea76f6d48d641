import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START as GRAPH_START
from langgraph.graph import StateGraph
from langgraph.types import interrupt
from typer.testing import CliRunner, Result

from graph_agent.calls import NEW_MESSAGE
from graph_agent.cli.main import app
from graph_agent.graph.state import AgentState
from graph_agent.ports.usage import usage_report
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database
from tests.fakes.database_rows import START, Rows, record_of
from tests.fakes.light_commands import json_of, run
from tests.fakes.played_thread import play
from tests.fakes.scripted_model import text

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
async def path(tmp_path: Path) -> Path:
    builder: Any = StateGraph(AgentState)
    builder.add_node("reasoning", _reasoning)
    builder.add_node("human_approval", _human_approval)
    builder.add_edge(GRAPH_START, "reasoning")
    builder.add_edge("reasoning", "human_approval")
    async with await Database.open(tmp_path / "graph-agent.db") as database:
        graph = builder.compile(checkpointer=CheckpointSaver(database))
        await graph.ainvoke({"messages": [HumanMessage("go", id="h1")]}, _CONFIG, durability="sync")
    return tmp_path / "graph-agent.db"


def _run(path: Path, *arguments: str) -> str:
    result = run("inspect", *arguments, "--db", str(path))
    assert result.exit_code == 0, result.exception
    return result.stdout


def test_the_state_has_the_documented_shape(path: Path) -> None:
    whole = json.loads(_run(path, "t1", "--json"))

    [task] = whole["tasks"]
    [asked] = whole["interrupts"]
    values = whole["values"]
    assert list(whole)[:10] == [
        "thread_id",
        "checkpoint_id",
        "status",
        "next",
        "tasks",
        "interrupts",
        "pending_writes",
        "calls",
        "usage",
        "values",
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


def test_an_older_checkpoint_is_shown_as_it_was(path: Path) -> None:
    head = json.loads(_run(path, "--json"))

    older = json.loads(_run(path, head["parent_id"], "--json"))

    assert (older["next"], older["status"], older["is_head"]) == (["reasoning"], "resumable", False)
    assert [message["content"] for message in older["values"]["messages"]] == ["go"]


def test_the_text_is_literal_and_complete_with_full(path: Path) -> None:
    shown = _run(path, "t1", "--full")

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


def test_no_line_is_longer_than_the_screen(path: Path) -> None:
    lines = run("inspect", "t1", "--db", str(path), COLUMNS="60").stdout.splitlines()

    assert max(map(len, lines)) == 60


@pytest.mark.parametrize(
    ("piece", "text"),
    [
        ("messages.0.content", "go\n"),
        ("messages.-1.content", "I shall build [red]it\\x1b[0m\n"),
        ("calls.call_a.arguments", '{\n  "command": "make"\n}\n'),
        ("tasks.0.name", "human_approval\n"),
        ("usage.input_tokens", "5\n"),
    ],
)
def test_one_piece_can_be_asked_for_by_its_path(path: Path, piece: str, text: str) -> None:
    assert _run(path, "t1", "--path", piece) == text


def test_a_piece_is_json_when_json_is_asked_for(path: Path) -> None:
    assert json.loads(_run(path, "t1", "--path", "todo.0.content", "--json")) == "build\u202e"


def test_watching_refuses_a_status_there_is_not_and_a_path(path: Path) -> None:
    results = [
        run("inspect", "t1", "--db", str(path), *options)
        for options in (("--until", "tired"), ("--watch", "--path", "messages"))
    ]

    assert "'tired'. Choose one of: interrupted" in str(results[0].exception)
    assert (results[1].exit_code, "--path" in results[1].stderr) == (2, True)


def test_calls_are_records_with_their_thread_and_can_be_filtered(rows: Rows) -> None:
    rows.thread(next_nodes=("tool_execution",))
    rows.call(record_of("executing"))
    rows.call(record_of("success", "call_b", tool_name="grep"))

    broken = record_of("interrupted", reason="never_started", started=False, stored_status="executing")
    done = record_of("success", "call_b", tool_name="grep")
    assert json_of(rows, "calls") == {"calls": [{"thread_id": "t1", **broken}, {"thread_id": "t1", **done}]}
    assert [call["call_id"] for call in json_of(rows, "calls", "--status", "interrupted")["calls"]] == ["call_a"]
    assert [call["call_id"] for call in json_of(rows, "calls", "t1", "--tool", "grep")["calls"]] == ["call_b"]
    assert [call["call_id"] for call in json_of(rows, "calls", "call_b")["calls"]] == ["call_b"]


def test_a_call_that_is_named_is_shown_whole(rows: Rows) -> None:
    rows.thread()
    rows.call(record_of("success", result="".join(f"line {number}\n" for number in range(30))))
    rows.call(record_of("success", "call_b"))

    whole = run("calls", "call_a", "--db", str(rows.path)).stdout.splitlines()
    table = run("calls", "t1", "--db", str(rows.path)).stdout.splitlines()

    assert whole[2:] == ["  command: make", "  result:", *(f"  │ line {number}" for number in range(30))]
    assert len(table) == 3


def test_an_answer_that_waits_to_be_taken_in_is_told_with_its_call(rows: Rows) -> None:
    rows.thread(next_nodes=("human_approval",))
    rows.call(record_of("interrupted"))
    rows.decision("retry", "recovery")

    [call] = json_of(rows, "calls")["calls"]

    assert (call["status"], call["answered_by"], call["answered_at"]) == ("interrupted", "cli pid 7", START)


def test_a_status_that_does_not_exist_is_named_with_those_that_do(rows: Rows) -> None:
    refused = run("calls", "--status", "broken", "--db", str(rows.path))

    assert "'broken'. Choose one of: pending, awaiting_approval" in str(refused.exception)


def test_without_a_database_there_are_no_calls_and_no_thread_to_ask_for(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.db")

    assert run("calls", "--db", missing).stdout == "No calls.\n"
    assert run("calls", "--status", "success", "--db", missing).stdout == "No matching calls.\n"
    assert json.loads(run("calls", "--db", missing, "--json").stdout) == {"calls": []}
    assert missing in str(run("calls", "t1", "--db", missing).exception)


def _diff(path: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["diff", *arguments, "--db", str(path)])


def test_two_checkpoints_differ_in_the_messages_between_them(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    first, second = play(path, "one", "two", replies=(text("a"), text("b")))

    there = json.loads(_diff(path, first, second, "--json").stdout)["changes"]
    back = json.loads(_diff(path, second, first, "--json").stdout)["changes"]
    messages = [change for change in there if change["path"].startswith("messages.")]

    assert [(change["op"], change["old"], change["new"]["content"]) for change in messages] == [
        ("added", None, "two"),
        ("added", None, "b"),
    ]
    assert [(change["path"], change["op"]) for change in back if change["path"].startswith("messages.")] == [
        (change["path"], "removed") for change in messages
    ]
    assert _diff(path, second, second).stdout == "No differences.\n"


def test_an_unknown_id_is_told_as_one(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    play(path, "one")

    assert "UnknownId" in repr(_diff(path, "no-such", "nor-this").exception)


def test_the_ids_that_are_listed_are_ids_that_other_commands_take(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    first, second = play(path, "one", "two", replies=(text("a"), text("b")))

    listed = CliRunner().invoke(app, ["history", "--db", str(path), "--json"])
    shown = json.loads(listed.stdout)
    inspected = CliRunner().invoke(app, ["inspect", shown["checkpoints"][-1]["checkpoint_id"], "--db", str(path)])

    assert (listed.exit_code, inspected.exit_code) == (0, 0)
    assert shown["checkpoints"][0]["checkpoint_id"] == second
    assert first in [entry["checkpoint_id"] for entry in shown["checkpoints"]]
