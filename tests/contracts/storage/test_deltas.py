from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database
from tests.graph_agent.storage.sqlite.looking import execute, rows
from tests.graph_agent.storage.sqlite.small_graph import Graph, compile_graph, config_of, play_turn

_CHANNELS = ["messages", "calls", "never written"]


async def _checkpoints(saver: CheckpointSaver) -> list[CheckpointTuple]:
    return [found async for found in saver.alist(config_of("t"))]


async def test_the_history_of_every_checkpoint_is_that_of_the_framework(
    saver: CheckpointSaver, graph: Graph
) -> None:
    for text in ("one", "two", "three"):
        await play_turn(graph, "t", text)

    for found in await _checkpoints(saver):
        ours = await saver.aget_delta_channel_history(config=found.config, channels=_CHANNELS)
        theirs = await BaseCheckpointSaver.aget_delta_channel_history(
            saver, config=found.config, channels=_CHANNELS
        )

        assert ours == theirs


async def test_the_latest_checkpoint_is_the_default(saver: CheckpointSaver) -> None:
    await play_turn(compile_graph(saver), "t", "one")
    newest = (await _checkpoints(saver))[0].config

    latest = await saver.aget_delta_channel_history(config=config_of("t"), channels=["calls"])

    assert latest["calls"]["writes"]
    assert latest == await saver.aget_delta_channel_history(config=newest, channels=["calls"])


async def test_an_unknown_thread_has_no_history(database: Database) -> None:
    found = await CheckpointSaver(database).aget_delta_channel_history(config=config_of("t"), channels=["calls"])

    assert found == {"calls": {"writes": []}}


async def test_a_loop_of_ancestors_ends(database: Database, saver: CheckpointSaver) -> None:
    await play_turn(compile_graph(saver), "t", "one", answer=False)
    oldest, newest = (await _checkpoints(saver))[-1], (await _checkpoints(saver))[0]
    await execute(
        database,
        "UPDATE checkpoints SET parent_checkpoint_id = ? WHERE checkpoint_id = ?",
        newest.checkpoint["id"],
        oldest.checkpoint["id"],
    )

    found = await saver.aget_delta_channel_history(config=newest.config, channels=["never written"])

    assert found == {"never written": {"writes": []}}


async def _copy(graph: Any, checkpoint_id: str) -> str:
    where = {"configurable": {"thread_id": "t", "checkpoint_id": checkpoint_id}}
    config = await graph.aupdate_state(where, None, as_node="__copy__")
    return str(config["configurable"]["checkpoint_id"])


async def _checkpoint_after(database: Database, message_id: str) -> str:
    found = await rows(database, "SELECT checkpoint_id FROM transcript WHERE message_id = ?", message_id)
    return str(found[0][0])


async def _branches(database: Database) -> list[tuple[Any, ...]]:
    return await rows(database, "SELECT branch, parent_branch, from_seq FROM branches ORDER BY branch")


async def test_a_thread_that_only_continues_has_one_branch(database: Database, graph: Graph) -> None:
    await play_turn(graph, "t", "one")
    await play_turn(graph, "t", "two")

    assert (await _branches(database), await rows(database, "SELECT branch FROM threads")) == ([], [(0,)])


async def test_a_copy_begins_a_branch_after_what_its_original_had_brought(database: Database, graph: Graph) -> None:
    await play_turn(graph, "t", "one")
    await play_turn(graph, "t", "two")

    copy = await _copy(graph, await _checkpoint_after(database, "answer-call-1-z"))

    assert await _branches(database) == [(1, 0, 5)]
    assert await rows(database, "SELECT branch, turns, checkpoint_id FROM threads") == [(1, 1, copy)]


async def test_a_branch_of_a_branch_starts_at_the_last_message(database: Database, graph: Graph) -> None:
    await play_turn(graph, "t", "one")
    idle = (await graph.aget_state(config_of("t"))).config["configurable"]["checkpoint_id"]
    await play_turn(graph, "t", "two")
    first_copy = await _copy(graph, idle)
    await play_turn(graph, "t", "three")

    await _copy(graph, await _checkpoint_after(database, "message three"))
    await _copy(graph, first_copy)
    await _copy(graph, idle)

    assert await _branches(database) == [(1, 0, 5), (2, 1, 11), (3, 0, 5), (4, 0, 5)]


async def test_a_copy_of_the_very_first_checkpoint_shares_nothing(database: Database, graph: Graph) -> None:
    await play_turn(graph, "t", "one")
    [(first,)] = await rows(database, "SELECT min(checkpoint_id) FROM checkpoints")

    await _copy(graph, first)

    assert await _branches(database) == [(1, 0, 0)]
    assert await rows(database, "SELECT turns FROM threads") == [(0,)]


async def test_calls_of_a_resumed_state_get_the_record_they_have_there(database: Database, graph: Graph) -> None:
    await play_turn(graph, "t", "one")
    await play_turn(graph, "t", "two", answer=False)

    await _copy(graph, await _checkpoint_after(database, "reply-1"))

    statement = "SELECT call_id, status, json_extract(record, '$.result'), abandoned FROM call_log ORDER BY seq"
    assert await rows(database, statement) == [
        *((f"call-1-{name}", "awaiting_approval", None, 0) for name in "zyx"),
        *((f"call-2-{name}", "awaiting_approval", None, 1) for name in "zyx"),
    ]


async def test_two_updates_at_an_older_checkpoint_are_two_branches(database: Database, graph: Graph) -> None:
    await play_turn(graph, "t", "one")
    idle = (await graph.aget_state(config_of("t"))).config
    for words in ("first", "second"):
        await graph.aupdate_state(idle, {"messages": HumanMessage(words, id=words)}, as_node="observe")

    shown = await rows(database, "SELECT branch, message_id FROM transcript WHERE seq > 5 ORDER BY seq")
    held = (await graph.aget_state(config_of("t"))).values["messages"]
    assert (shown, [message.id for message in held][5:]) == ([(0, "first"), (1, "second")], ["second"])
