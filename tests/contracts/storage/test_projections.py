import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langgraph.types import Command

from graph_agent.calls import NEW_MESSAGE, REPLACES, SHORTENED
from graph_agent.storage import Connection
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.projections import Place, fold_messages, nodes_after
from tests.graph_agent.storage.sqlite.looking import content_of, execute, rows
from tests.graph_agent.storage.sqlite.small_graph import Graph, compile_graph, config_of, play_turn


async def test_a_thread_that_waits_is_listed_with_its_question_and_its_calls(database: Database) -> None:
    await play_turn(compile_graph(CheckpointSaver(database)), "t", "please look", answer=False)

    threads = await rows(database, "SELECT title, next_nodes, turns, outcome FROM threads")
    call_log = await rows(database, "SELECT seq, call_id, tool_name, status, risk FROM call_log ORDER BY seq")
    transcript = await rows(database, "SELECT seq, role, message_id FROM transcript ORDER BY seq")
    assert threads == [("please look", '["ask_person"]', 1, "")]
    assert call_log == [
        (n, f"call-1-{name}", "read_file", "awaiting_approval", "low") for n, name in enumerate("zyx", 1)
    ]
    assert transcript == [(1, "user", "message please look"), (2, "assistant", "reply-1")]


async def test_an_idle_thread_is_listed_with_its_outcome_and_finished_calls(
    database: Database, graph: Graph
) -> None:
    await play_turn(graph, "t", "one")
    await play_turn(graph, "t", "two")

    threads = await rows(database, "SELECT title, next_nodes, turns, outcome FROM threads")
    call_log = await rows(
        database, "SELECT call_id, status, json_extract(record, '$.result') FROM call_log ORDER BY seq"
    )
    roles = await rows(database, "SELECT role FROM transcript ORDER BY seq")
    assert threads == [("one", "[]", 2, "done")]
    assert call_log == [(f"call-{turn}-{name}", "success", "read") for turn in (1, 2) for name in "zyx"]
    assert [role for (role,) in roles] == ["user", "assistant", "tool", "tool", "tool"] * 2


async def test_the_head_is_the_checkpoint_that_the_saver_calls_latest(
    database: Database, saver: CheckpointSaver
) -> None:
    await play_turn(compile_graph(saver), "t", "one")

    latest = await saver.aget_tuple(config_of("t"))

    assert latest is not None
    assert await rows(database, "SELECT checkpoint_id FROM threads") == [(latest.checkpoint["id"],)]


async def test_the_next_nodes_of_every_checkpoint_are_those_the_graph_would_run(
    saver: CheckpointSaver, graph: Graph
) -> None:
    await play_turn(graph, "t", "one")
    await play_turn(graph, "t", "two", answer=False)

    expected = {
        state.config["configurable"]["checkpoint_id"]: sorted(set(state.next))
        async for state in graph.aget_state_history(config_of("t"))
    }

    found = [stored async for stored in saver.alist(config_of("t"))]
    assert {one.checkpoint["id"]: nodes_after(one.checkpoint) for one in found} == expected
    assert ["ask_person"] in expected.values()
    assert ["run"] in expected.values()


async def test_rebuilding_from_the_checkpoints_gives_the_same_rows(
    database: Database, saver: CheckpointSaver, graph: Graph
) -> None:
    await play_turn(graph, "t", "one")
    await play_turn(graph, "other", "one")
    await play_turn(graph, "t", "two", answer=False)
    before = await content_of(database)
    await execute(database, "UPDATE call_log SET status = 'wrong', record = '{}' WHERE thread_id = 't'")

    await saver.rebuild_projections("t")

    assert await content_of(database) == before


async def test_storing_a_checkpoint_a_second_time_changes_no_row(
    database: Database, saver: CheckpointSaver
) -> None:
    await play_turn(compile_graph(saver), "t", "one")
    before = await content_of(database)
    head = await saver.aget_tuple(config_of("t"))
    assert head is not None
    assert head.parent_config is not None

    await saver.aput(head.parent_config, head.checkpoint, head.metadata, {})

    assert await content_of(database) == before


async def test_a_branch_adds_to_the_transcript_and_becomes_the_head(database: Database, graph: Graph) -> None:
    await play_turn(graph, "t", "one")

    await graph.ainvoke(None, await _waiting(graph), durability="sync")
    threads = await rows(database, "SELECT next_nodes, turns FROM threads")
    await graph.ainvoke(Command(resume={"by": "test"}), config_of("t"), durability="sync")

    assert threads == [('["ask_person"]', 1)]
    assert await rows(database, "SELECT next_nodes, turns, outcome FROM threads") == [("[]", 1, "done")]
    found = await rows(database, "SELECT branch, seq, message_id FROM transcript WHERE seq > 2 ORDER BY seq")
    assert [row[:2] for row in found] == [(0, 3), (0, 4), (0, 5), (1, 6), (1, 7), (1, 8)]
    assert [row[2] for row in found[:3]] == [row[2] for row in found[3:]]
    assert await rows(database, "SELECT branch, parent_branch, from_seq FROM branches") == [(1, 0, 2)]


async def test_a_message_sent_at_an_older_checkpoint_is_in_the_transcript(database: Database, graph: Graph) -> None:
    await play_turn(graph, "t", "one")
    head = (await graph.aget_state(config_of("t"))).config
    await play_turn(graph, "t", "two")

    message = HumanMessage("instead of two", id="message instead")
    await graph.ainvoke({"messages": [message]}, head, durability="sync")

    found = await rows(database, "SELECT message_id FROM transcript WHERE role = 'user' ORDER BY seq")
    assert found == [("message one",), ("message two",), ("message instead",)]


async def test_checkpoints_of_nested_graphs_leave_the_tables_alone(
    database: Database, saver: CheckpointSaver
) -> None:
    checkpoint: Any = {"v": 4, "id": "1", "ts": "2026-01-01T00:00:00+00:00", "channel_values": {}}

    await saver.aput({"configurable": {"thread_id": "t", "checkpoint_ns": "child:1"}}, checkpoint, {}, {})

    assert set(map(len, (await content_of(database)).values())) == {0}


async def test_odd_values_in_the_channels_do_not_prevent_the_checkpoint(
    database: Database, saver: CheckpointSaver
) -> None:
    odd_calls = [
        7,
        {"c1": "text"},
        {"c1": {"status": "pending"}},
        {"c1": {"tool_name": None, "status": ["x"], "attempt": "two"}, NEW_MESSAGE: None},
        {3: {"tool_name": "t", "status": "pending"}},
        {"c\ud800": {"tool_name": "\ud800", "status": "pending", 5: {"nested": b"bytes"}}},
    ]
    first: Any = {"v": 4, "id": "1", "ts": None, "channel_values": {"messages": "text", "turn": [], "calls": 3}}
    second: Any = {
        "v": 4,
        "id": "2",
        "ts": "yesterday",
        "channel_values": {"__start__": 1, "branch:to:x": None, "__pregel_tasks": 9},
        "channel_versions": {"__start__": 3, "branch:to:x": 2.0},
        "versions_seen": {"__start__": None, "x": {"branch:to:x": "1"}},
    }
    parent = await saver.aput(config_of("t"), first, {}, {})
    await saver.aput_writes(parent, [("calls", value) for value in odd_calls] + [("messages", None)], "task")

    await saver.aput(parent, second, {"source": "loop"}, {})

    call_log = await rows(database, "SELECT call_id, tool_name, status FROM call_log ORDER BY seq")
    assert call_log == [("c1", "None", "['x']"), ("c?", "?", "pending")]
    assert await rows(database, "SELECT checkpoint_id, next_nodes FROM threads") == [("2", '["__start__","x"]')]


async def _waiting(graph: Any) -> Any:
    async for state in graph.aget_state_history(config_of("t")):
        if state.next == ("ask_person",):
            return state.config
    raise LookupError("no checkpoint waits for a person")


async def _fold(database: Database, *messages: BaseMessage) -> None:
    def fold(connection: Connection) -> None:
        connection.execute("INSERT OR IGNORE INTO threads (thread_id, created_at, updated_at) VALUES ('t', '', '')")
        fold_messages(connection, Place("t", "7", "now"), messages)

    await database.write(fold)


async def _bodies(database: Database) -> list[tuple[int, str, str, dict[str, Any]]]:
    found = await rows(database, "SELECT seq, message_id, role, body FROM transcript ORDER BY seq")
    return [(seq, message_id, role, json.loads(body)) for seq, message_id, role, body in found]


async def test_each_kind_of_message_becomes_a_row_of_its_role(database: Database) -> None:
    usage: Any = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    call: Any = {"name": "bash", "args": {"command": "ls"}, "id": "c", "type": "tool_call"}

    await _fold(
        database,
        SystemMessage("rules", id="s"),
        HumanMessage([{"type": "text", "text": "hi"}], id="h"),
        AIMessage("text", id="a", tool_calls=[call], usage_metadata=usage),
        ToolMessage("out", tool_call_id="c", id="r", name="bash", status="error"),
    )

    assert await _bodies(database) == [
        (1, "s", "system", {"content": "rules"}),
        (2, "h", "user", {"content": [{"type": "text", "text": "hi"}]}),
        (3, "a", "assistant", {"content": "text", "tool_calls": [call], "usage": usage}),
        (4, "r", "tool", {"content": "out", "tool_call_id": "c", "name": "bash", "status": "error"}),
    ]


async def test_a_message_written_again_replaces_its_body_and_keeps_its_place(database: Database) -> None:
    await _fold(database, HumanMessage("one", id="1"), HumanMessage("two", id="2"))

    await _fold(database, HumanMessage("one, better", id="1"))

    assert [(seq, body["content"]) for seq, _, _, body in await _bodies(database)] == [
        (1, "one, better"),
        (2, "two"),
    ]
    assert await rows(database, "SELECT turns FROM threads") == [(2,)]


async def test_a_message_taken_out_of_the_state_stays(database: Database) -> None:
    await _fold(database, HumanMessage("one", id="1"))

    await _fold(database, RemoveMessage(id="1"))

    assert [message_id for _, message_id, _, _ in await _bodies(database)] == ["1"]


async def test_a_message_that_was_shortened_in_the_state_stays_whole(database: Database) -> None:
    stub = ToolMessage("kept elsewhere", tool_call_id="c", id="1", response_metadata={SHORTENED: True})
    await _fold(database, ToolMessage("all of it", tool_call_id="c", id="1"))

    await _fold(database, stub, stub.model_copy(update={"id": "2"}))

    assert [body["content"] for *_, body in await _bodies(database)] == ["all of it", "kept elsewhere"]


async def test_a_summary_is_a_row_of_its_own_and_no_turn(database: Database) -> None:
    await _fold(database, HumanMessage("one", id="1"))

    await _fold(database, HumanMessage("so far", id="2", response_metadata={REPLACES: ["1"]}))

    assert [(role, body["content"]) for _, _, role, body in await _bodies(database)] == [
        ("user", "one"),
        ("summary", "so far"),
    ]
    assert await rows(database, "SELECT turns FROM threads") == [(1,)]


async def test_a_message_without_an_id_gets_one_from_its_place(database: Database) -> None:
    await _fold(database, HumanMessage("one"), HumanMessage("two"))
    await _fold(database, HumanMessage("one"), HumanMessage("two"))

    assert [message_id for _, message_id, _, _ in await _bodies(database)] == ["7:0", "7:1"]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("  fix\n the   bug ", "fix the bug"),
        ("x" * 80, "x" * 80),
        ("x" * 81, "x" * 79 + "…"),
        ("odd \ud800", "odd ?"),
    ],
)
async def test_the_first_message_gives_the_title(database: Database, text: str, title: str) -> None:
    await _fold(database, HumanMessage(text, id="1"), HumanMessage("later", id="2"))

    assert await rows(database, "SELECT title, turns FROM threads") == [(title, 2)]
