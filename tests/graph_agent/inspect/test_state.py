import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels import DeltaChannel
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt

from graph_agent.app.reader import read_database
from graph_agent.calls import NEW_MESSAGE, ToolCallInfo, merge_calls, merge_messages
from graph_agent.errors import DamagedDatabase, UnknownId
from graph_agent.inspect import CheckpointState
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database
from tests.fakes.database_rows import record_of

_CONFIG: RunnableConfig = {"configurable": {"thread_id": "t1"}}
_QUESTION = {"approve": [{"call_id": "c1"}, {"call_id": "c2"}], "recover": []}


class _State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], DeltaChannel(merge_messages, snapshot_frequency=5)]
    calls: Annotated[dict[str, ToolCallInfo], DeltaChannel(merge_calls, snapshot_frequency=100)]
    turn: dict[str, Any]


def _reasoning(state: _State) -> Command[Any]:
    if len(state["messages"]) > 9:
        return Command(goto="__end__", update={"messages": AIMessage("done", id="last")})
    number = len(state["messages"])
    tool_calls: list[Any] = [{"name": "bash", "args": {"n": n}, "id": f"c{n}"} for n in (1, 2)]
    message = AIMessage("", id=f"ai{number}", tool_calls=tool_calls)
    return Command(goto="tool_routing", update={"messages": [message], "turn": {"steps": number}})


def _tool_routing(state: _State) -> Command[Any]:
    records = {f"c{n}": record_of("awaiting_approval", f"c{n}") for n in (1, 2)}
    return Command(goto="human_approval", update={"calls": {NEW_MESSAGE: {}, **records}})


def _human_approval(state: _State) -> Command[Any]:
    interrupt(_QUESTION)
    return Command(
        goto=[Send("tool_execution", {"call_id": call_id}) for call_id in state["calls"]],
        update={"calls": {call_id: {"status": "pending"} for call_id in state["calls"]}},
    )


def _tool_execution(task: dict[str, Any]) -> Command[Any]:
    if task["call_id"] == "c2":
        raise RuntimeError("the machine burns")
    return Command(goto="observation", update={"calls": {task["call_id"]: {"status": "executing"}}})


def _observation(state: _State) -> Command[Any]:
    number = len(state["messages"])
    return Command(
        goto="reasoning",
        update={"messages": [ToolMessage("ok", tool_call_id="c1", id=f"tool{number}"), RemoveMessage(id="h1")]},
    )


def _graph(saver: CheckpointSaver, *, fails: bool = True) -> Any:
    builder: Any = StateGraph(_State)
    builder.add_node("reasoning", _reasoning, destinations=("tool_routing", "__end__"))
    builder.add_node("tool_routing", _tool_routing, destinations=("human_approval",))
    builder.add_node("human_approval", _human_approval, destinations=("tool_execution",))
    execution = _tool_execution if fails else _succeed
    builder.add_node("tool_execution", execution, destinations=("observation",))
    builder.add_node("observation", _observation, destinations=("reasoning",))
    builder.add_edge(START, "reasoning")
    return builder.compile(checkpointer=saver)


def _succeed(task: dict[str, Any]) -> Command[Any]:
    return Command(goto="observation", update={"calls": {task["call_id"]: {"status": "executing"}}})


def _dumped(values: dict[str, Any]) -> dict[str, Any]:
    messages = [message.model_dump() for message in values.get("messages", [])]
    return {**values, "messages": messages} if "messages" in values else values


def _without_defaults(messages: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(m["type"], m["id"], m["content"], m.get("tool_calls", []), m.get("tool_call_id")) for m in messages]


async def test_every_checkpoint_reads_as_the_engine_itself_tells_it(tmp_path: Path) -> None:
    path = tmp_path / "graph-agent.db"
    async with await Database.open(path) as database:
        graph = _graph(CheckpointSaver(database), fails=False)
        await graph.ainvoke({"messages": [HumanMessage("go", id="h1")]}, _CONFIG, durability="sync")
        for _ in range(6):
            await graph.ainvoke(Command(resume={"by": "me"}), _CONFIG, durability="sync")
        told = [snapshot async for snapshot in graph.aget_state_history(_CONFIG)]

        with read_database(path) as reader:
            read = [
                reader.inspection("t1", snapshot.config["configurable"]["checkpoint_id"]).state for snapshot in told
            ]

    assert len(told) > 20
    for state, snapshot in zip(read, told, strict=True):
        expected = _dumped(snapshot.values)
        shown = dict(state.values)
        assert _without_defaults(shown.pop("messages", [])) == _without_defaults(expected.pop("messages", []))
        assert {name: value for name, value in shown.items() if value} == {k: v for k, v in expected.items() if v}
        assert [task.node for task in state.tasks] == [task.name for task in snapshot.tasks]
        assert [item["id"] for item in state.interrupts] == [item.id for item in snapshot.interrupts]
        assert state.next == snapshot.next
        assert state.is_idle is (snapshot.tasks == ())


async def _state_after(path: Path, *inputs: Any) -> tuple[CheckpointState, Any]:
    async with await Database.open(path) as database:
        graph = _graph(CheckpointSaver(database))
        for given in inputs:
            await graph.ainvoke(given, _CONFIG, durability="sync")
        with read_database(path) as reader:
            return reader.inspection("t1").state, await graph.aget_state(_CONFIG)


async def test_a_thread_that_asks_shows_its_question_and_no_effect_of_it(tmp_path: Path) -> None:
    state, told = await _state_after(tmp_path / "db", {"messages": [HumanMessage("go", id="h1")]})

    [task] = state.tasks
    [asked] = told.interrupts
    assert (state.next, state.checkpoint_id) == (told.next, told.config["configurable"]["checkpoint_id"])
    assert (task.id, task.node, task.status) == (told.tasks[0].id, "human_approval", "interrupted")
    assert task.interrupts == ({"id": asked.id, "value": _QUESTION, "node": "human_approval"},)
    assert [write.channel for write in state.pending_writes] == ["__interrupt__"]
    assert state.values["calls"] == {f"c{n}": record_of("awaiting_approval", f"c{n}") for n in (1, 2)}


async def test_a_batch_broken_off_shows_which_task_finished_and_which_failed(tmp_path: Path) -> None:
    path = tmp_path / "db"
    await _state_after(path, {"messages": [HumanMessage("go", id="h1")]})
    async with await Database.open(path) as database:
        graph = _graph(CheckpointSaver(database))
        with pytest.raises(RuntimeError, match="burns"):
            await graph.ainvoke(Command(resume={"by": "me"}), _CONFIG, durability="sync")
        told = await graph.aget_state(_CONFIG)
        with read_database(path) as reader:
            found = reader.inspection("t1")

    tasks = {task.input["call_id"]: task for task in found.state.tasks}
    assert (tasks["c1"].status, tasks["c2"].status) == ("finished", "failed")
    assert "the machine burns" in str(tasks["c2"].error)
    assert found.state.next == told.next == ("tool_execution",)
    assert [call.record["status"] for call in found.calls] == ["pending", "pending"]
    assert found.status == "resumable"


async def test_a_checkpoint_of_another_thread_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "db"
    await _state_after(path, {"messages": [HumanMessage("go", id="h1")]})

    with read_database(path) as reader:
        with pytest.raises(UnknownId, match="Thread 't1' has no checkpoint 'c0'"):
            reader.inspection("t1", "c0")
        with pytest.raises(UnknownId, match="There is no thread 't2'"):
            reader.inspection("t2")


async def test_torn_metadata_is_named_as_damage(tmp_path: Path) -> None:
    path = tmp_path / "db"
    await _state_after(path, {"messages": [HumanMessage("go", id="h1")]})
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE checkpoints SET metadata = substr(metadata, 1, 10)")
        connection.commit()

    with read_database(path) as reader, pytest.raises(DamagedDatabase, match="cannot be decoded"):
        reader.inspection("t1")


async def test_the_transcript_keeps_what_the_state_has_let_go(tmp_path: Path) -> None:
    path = tmp_path / "db"
    async with await Database.open(path) as database:
        graph = _graph(CheckpointSaver(database), fails=False)
        await graph.ainvoke({"messages": [HumanMessage("go", id="h1")]}, _CONFIG, durability="sync")
        await graph.ainvoke(Command(resume={"by": "me"}), _CONFIG, durability="sync")

    with read_database(path) as reader:
        transcript = reader.transcript("t1")
        ids = [message["id"] for message in reader.inspection("t1").state.values["messages"]]

    assert [(entry.role, entry.message_id) for entry in transcript][:3] == [
        ("user", "h1"),
        ("assistant", "ai1"),
        ("tool", "tool2"),
    ]
    assert "h1" not in ids


class _Dying(CheckpointSaver):
    async def aput_writes(self, *given: Any, **named: Any) -> None:
        raise ConnectionAbortedError("killed here")


async def test_what_was_sent_is_shown_before_any_step_has_taken_it_in(tmp_path: Path) -> None:
    path = tmp_path / "db"
    async with await Database.open(path) as database:
        with pytest.raises(ConnectionAbortedError):
            await _graph(_Dying(database)).ainvoke({"messages": [HumanMessage("go", id="h1")]}, _CONFIG)

    with read_database(path) as reader:
        [task] = reader.inspection("t1").state.tasks
        shown = [
            *reader.transcript("t1"),
            *reader.recent("t1", 9).entries,
            *reader.recent("t1", 9, turns=1).entries,
        ]
        inconsistencies = reader.inconsistencies("t1")

    assert (task.node, task.status, task.input["messages"][0]["content"]) == ("__start__", "waiting", "go")
    assert [(entry.seq, entry.message_id, entry.body["content"]) for entry in shown] == [(1, "h1", "go")] * 3
    assert inconsistencies == []
