from typing import Any

from langchain_core.messages import HumanMessage

from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database
from tests.graph_agent.storage.sqlite.looking import rows
from tests.graph_agent.storage.sqlite.small_graph import compile_graph, config_of, play_turn


async def _count(database: Database) -> int:
    count: int = (await rows(database, "SELECT count(*) FROM checkpoints"))[0][0]
    return count


async def test_pruning_never_cuts_between_a_snapshot_and_the_head(database: Database) -> None:
    saver = CheckpointSaver(database)
    graph = compile_graph(saver)
    for turn in range(36):
        await play_turn(graph, "t", str(turn))
    before = await graph.aget_state(config_of("t"))
    count_before = await _count(database)

    await saver.aprune(["t"])

    after = await graph.aget_state(config_of("t"))
    assert after.values == before.values
    assert 1 < await _count(database) < count_before


async def test_a_pruned_thread_takes_the_next_turn(database: Database) -> None:
    saver = CheckpointSaver(database)
    graph = compile_graph(saver)
    await play_turn(graph, "t", "one")
    await saver.aprune(["t"])

    await play_turn(graph, "t", "two")

    head = await graph.aget_state(config_of("t"))
    assert [message.id for message in head.values["messages"] if message.type == "human"] == [
        "message one",
        "message two",
    ]


async def test_deleting_runs_leaves_the_checkpoints_of_others(database: Database) -> None:
    saver = CheckpointSaver(database)
    parent: Any = config_of("t")
    for number, run in enumerate(("first", "second"), 1):
        checkpoint: Any = {"v": 4, "id": str(number), "ts": "2026-01-01T00:00:00+00:00", "channel_values": {}}
        parent = await saver.aput(parent, checkpoint, {"run_id": run}, {})

    await saver.adelete_for_runs(["first"])

    assert await rows(database, "SELECT checkpoint_id FROM checkpoints") == [("2",)]


async def test_when_the_newest_run_is_deleted_the_head_is_what_stood_before_it(database: Database) -> None:
    saver = CheckpointSaver(database)
    graph = compile_graph(saver)
    await play_turn(graph, "t", "one")
    before = await rows(database, "SELECT checkpoint_id, next_nodes FROM threads")
    second: Any = {**config_of("t"), "metadata": {"run_id": "second"}}
    await graph.ainvoke({"messages": [HumanMessage("two", id="message two")]}, second, durability="sync")

    await saver.adelete_for_runs(["second"])
    after = await rows(database, "SELECT checkpoint_id, next_nodes FROM threads")
    await play_turn(graph, "t", "three")

    head = await graph.aget_state(config_of("t"))
    assert after == before
    assert [message.id for message in head.values["messages"] if message.type == "human"] == [
        "message one",
        "message three",
    ]
