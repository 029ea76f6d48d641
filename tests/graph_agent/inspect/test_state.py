import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypedDict

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels import DeltaChannel
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt

from graph_agent.app.reader import read_database
from graph_agent.calls import NEW_MESSAGE, ToolCallInfo, merge_calls, merge_messages
from graph_agent.errors import DamagedDatabase, UnknownId
from graph_agent.inspect import CheckpointState
from graph_agent.inspect.state import Change, channel_values, diff_values
from graph_agent.storage import open_read_store
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database
from tests.fakes.database_rows import Rows, record_of

_CONFIG: RunnableConfig = {"configurable": {"thread_id": "t1"}}
_GO = {"messages": [HumanMessage("go", id="h1")]}
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
        await graph.ainvoke(_GO, _CONFIG, durability="sync")
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


@pytest.fixture
async def asking(tmp_path: Path) -> Path:
    """The database of a thread that waits for an approval."""
    await _state_after(tmp_path / "db", _GO)
    return tmp_path / "db"


async def test_a_thread_that_asks_shows_its_question_and_no_effect_of_it(tmp_path: Path) -> None:
    state, told = await _state_after(tmp_path / "db", _GO)

    [task] = state.tasks
    [asked] = told.interrupts
    assert (state.next, state.checkpoint_id) == (told.next, told.config["configurable"]["checkpoint_id"])
    assert (task.id, task.node, task.status) == (told.tasks[0].id, "human_approval", "interrupted")
    assert task.interrupts == ({"id": asked.id, "value": _QUESTION, "node": "human_approval"},)
    assert [write.channel for write in state.pending_writes] == ["__interrupt__"]
    assert state.values["calls"] == {f"c{n}": record_of("awaiting_approval", f"c{n}") for n in (1, 2)}


async def test_an_interrupted_batch_shows_which_task_finished_and_which_failed(asking: Path) -> None:
    async with await Database.open(asking) as database:
        graph = _graph(CheckpointSaver(database))
        with pytest.raises(RuntimeError, match="burns"):
            await graph.ainvoke(Command(resume={"by": "me"}), _CONFIG, durability="sync")
        told = await graph.aget_state(_CONFIG)
        with read_database(asking) as reader:
            found = reader.inspection("t1")

    tasks = {task.input["call_id"]: task for task in found.state.tasks}
    assert (tasks["c1"].status, tasks["c2"].status) == ("finished", "failed")
    assert "the machine burns" in str(tasks["c2"].error)
    assert found.state.next == told.next == ("tool_execution",)
    assert [call.record["status"] for call in found.calls] == ["pending", "pending"]
    assert found.status == "resumable"


async def test_a_checkpoint_of_another_thread_is_unknown(asking: Path) -> None:

    with read_database(asking) as reader:
        with pytest.raises(UnknownId, match="Thread 't1' has no checkpoint 'c0'"):
            reader.inspection("t1", "c0")
        with pytest.raises(UnknownId, match="There is no thread 't2'"):
            reader.inspection("t2")


async def test_torn_metadata_is_named_as_damage(asking: Path) -> None:
    with closing(sqlite3.connect(asking)) as connection:
        connection.execute("UPDATE checkpoints SET metadata = substr(metadata, 1, 10)")
        connection.commit()

    with read_database(asking) as reader, pytest.raises(DamagedDatabase, match="its metadata cannot be read"):
        reader.inspection("t1")


async def test_the_transcript_keeps_what_the_state_has_let_go(tmp_path: Path) -> None:
    path = tmp_path / "db"
    async with await Database.open(path) as database:
        graph = _graph(CheckpointSaver(database), fails=False)
        await graph.ainvoke(_GO, _CONFIG, durability="sync")
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
            await _graph(_Dying(database)).ainvoke(_GO, _CONFIG)

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


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ({"a": 1}, {"a": 2}, [Change("a", "changed", 1, 2)]),
        ({"a": {"b": 1}}, {"a": {"c": 1}}, [Change("a.c", "added", None, 1), Change("a.b", "removed", 1, None)]),
        ({"a": [1, 2]}, {"a": [1]}, [Change("a.1", "removed", 2, None)]),
        ({"a": 1}, {"a": True}, [Change("a", "changed", old=1, new=True)]),
        ({"a": [1]}, {"a": "text"}, [Change("a", "changed", [1], "text")]),
    ],
)
def test_each_place_that_differs_is_named(old: Any, new: Any, changes: list[Change]) -> None:
    assert diff_values(old, new) == changes


def test_messages_are_compared_by_id_wherever_they_stand() -> None:
    one, two, edited = {"id": "m1", "content": "a"}, {"id": "m2", "content": "b"}, {"id": "m1", "content": "c"}

    assert diff_values({"messages": [one, two]}, {"messages": [two, edited]}) == [
        Change("messages.m1.content", "changed", "a", "c")
    ]


@given(_JSON)
def test_nothing_differs_from_itself(value: Any) -> None:
    assert diff_values(value, value) == []


@given(_JSON, _JSON)
def test_two_values_that_differ_differ_somewhere(old: Any, new: Any) -> None:
    same = json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True)

    assert (diff_values(old, new) == []) == same


def _checkpoint(
    rows: Rows, checkpoint_id: str, parent_id: str | None, versions: Sequence[str] = (), **values: Any
) -> None:
    checkpoint = {"v": 4, "id": checkpoint_id, "ts": "", "versions_seen": {}, "channel_values": values}
    rows.execute(
        "INSERT INTO checkpoints (thread_id, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)"
        """ VALUES ('t1', ?, ?, 'msgpack', ?, '{"step": 1, "source": "loop"}')""",
        checkpoint_id,
        parent_id,
        ormsgpack.packb({**checkpoint, "channel_versions": dict.fromkeys(versions, "9")}),
    )


def _write(rows: Rows, checkpoint_id: str, channel: str, value: Any, path: str = "a", idx: int = 0) -> None:
    rows.execute(
        "INSERT INTO writes (thread_id, checkpoint_id, task_id, task_path, idx, channel, type, value)"
        " VALUES ('t1', ?, ?, ?, ?, ?, 'msgpack', ?)",
        checkpoint_id,
        f"task {path}",
        path,
        idx,
        channel,
        ormsgpack.packb(value),
    )


def _snapshot(value: Any) -> ormsgpack.Ext:
    return ormsgpack.Ext(7, ormsgpack.packb(value))


def _overwrite(value: Any) -> ormsgpack.Ext:
    return ormsgpack.Ext(2, ormsgpack.packb(["langgraph.types", "Overwrite", {"value": value}]))


def _message(identifier: str, content: str = "", kind: str = "human") -> dict[str, str]:
    return {"type": kind, "id": identifier, "content": content}


def _values(
    rows: Rows, parent_id: str, stored: dict[str, Any] | None = None, versions: Sequence[str] = ("messages",)
) -> dict[str, Any]:
    _checkpoint(rows, "target", parent_id, versions, **(stored or {}))
    with closing(open_read_store(rows.path)) as database:
        target = database.checkpoint("t1", "target")
        assert target is not None
        return channel_values(database, "t1", target)


def test_deltas_are_replayed_over_the_nearest_snapshot_in_the_order_of_the_tasks(rows: Rows) -> None:
    _checkpoint(rows, "9-oldest", None, messages=_snapshot([_message("lost")]))
    _checkpoint(rows, "5-middle", "9-oldest", messages=_snapshot([_message("a"), _message("b")]))
    _checkpoint(rows, "1-parent", "5-middle")
    _write(rows, "9-oldest", "messages", [_message("too old")])
    _write(rows, "5-middle", "messages", [_message("a", "changed"), _message("c")])
    _write(rows, "1-parent", "messages", [_message("e")], path="b")
    _write(rows, "1-parent", "messages", _message("d"), path="a", idx=1)
    _write(rows, "1-parent", "messages", [_message("b", kind="remove")], path="a", idx=0)
    _write(rows, "1-parent", "calls", {NEW_MESSAGE: {}, "call_a": record_of("pending")}, path="c")

    assert _values(rows, "1-parent", versions=("messages", "calls")) == {
        "messages": [_message("a", "changed"), _message("c"), _message("d"), _message("e")],
        "calls": {"call_a": record_of("pending")},
    }


@pytest.mark.parametrize("reset", [{"__overwrite__": [_message("kept")]}, _overwrite([_message("kept")])])
def test_an_overwrite_starts_again(rows: Rows, reset: Any) -> None:
    _checkpoint(rows, "c1", None)
    _write(rows, "c1", "messages", [_message("gone")])
    _write(rows, "c1", "messages", reset, idx=1)
    _write(rows, "c1", "messages", [_message("added")], idx=2)

    assert _values(rows, "c1")["messages"] == [_message("kept"), _message("added")]


def test_a_value_that_is_stored_needs_no_ancestors_and_the_engines_own_channels_are_left_out(rows: Rows) -> None:
    stored = {"messages": [_message("a")], "turn": {"steps": 1}, "branch:to:reasoning": None, "__pregel_tasks": []}

    values = _values(rows, "none", stored, versions=list(stored))

    assert values == {"messages": [_message("a")], "turn": {"steps": 1}}


def test_a_chain_that_bites_its_own_tail_ends(rows: Rows) -> None:
    _checkpoint(rows, "c1", "c2")
    _checkpoint(rows, "c2", "c1")
    _write(rows, "c1", "messages", [_message("a")])
    _write(rows, "c2", "messages", [_message("b")])

    assert _values(rows, "c1")["messages"] == [_message("b"), _message("a")]


@pytest.mark.parametrize(
    ("parent", "said"), [("gone", "its parent gone is missing"), ("c1", "1 at c1 are missing or changed")]
)
def test_without_what_it_depends_on_a_checkpoint_is_damaged(rows: Rows, parent: str, said: str) -> None:
    _checkpoint(rows, "c1", None)

    with pytest.raises(DamagedDatabase, match=rf"Checkpoint target of .*{said}.* intact checkpoint is c1"):
        _values(rows, parent)
