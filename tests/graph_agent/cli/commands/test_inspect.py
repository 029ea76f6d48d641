import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from graph_agent.calls import NEW_MESSAGE
from graph_agent.graph.state import AgentState
from graph_agent.ports.usage import told_usage
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database
from tests.fakes.database_rows import record_of
from tests.fakes.light_commands import run

_CONFIG: RunnableConfig = {"configurable": {"thread_id": "t1"}}
_RECORD = record_of("awaiting_approval", asked_at="then", display="make \x1b[2J")


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
    builder.add_edge(START, "reasoning")
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
    assert whole["usage"] == told_usage({"input_tokens": 5})
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
        "status      awaiting_approval",
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

    assert "'tired' is no status; choose one of interrupted, awaiting_approval" in str(results[0].exception)
    assert (results[1].exit_code, "leave --path out" in results[1].stderr) == (2, True)
