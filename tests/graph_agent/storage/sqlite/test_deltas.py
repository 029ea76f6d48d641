from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database
from tests.graph_agent.storage.sqlite.small_graph import compile_graph, config_of, play_turn

_CHANNELS = ["messages", "calls", "never written"]


async def _checkpoints(saver: CheckpointSaver) -> list[CheckpointTuple]:
    return [found async for found in saver.alist(config_of("t"))]


async def test_the_history_of_every_checkpoint_is_the_one_the_framework_walks_itself(database: Database) -> None:
    saver = CheckpointSaver(database)
    graph = compile_graph(saver)
    for text in ("one", "two", "three"):
        await play_turn(graph, "t", text)

    for found in await _checkpoints(saver):
        ours = await saver.aget_delta_channel_history(config=found.config, channels=_CHANNELS)
        theirs = await BaseCheckpointSaver.aget_delta_channel_history(
            saver, config=found.config, channels=_CHANNELS
        )

        assert ours == theirs


async def test_without_a_checkpoint_id_the_latest_is_meant(database: Database) -> None:
    saver = CheckpointSaver(database)
    await play_turn(compile_graph(saver), "t", "one")
    newest = (await _checkpoints(saver))[0].config

    latest = await saver.aget_delta_channel_history(config=config_of("t"), channels=["calls"])

    assert latest["calls"]["writes"]
    assert latest == await saver.aget_delta_channel_history(config=newest, channels=["calls"])


async def test_an_unknown_thread_has_no_history(database: Database) -> None:
    found = await CheckpointSaver(database).aget_delta_channel_history(config=config_of("t"), channels=["calls"])

    assert found == {"calls": {"writes": []}}


async def test_a_line_of_ancestors_that_is_a_loop_ends(database: Database) -> None:
    saver = CheckpointSaver(database)
    await play_turn(compile_graph(saver), "t", "one", answer=False)
    oldest, newest = (await _checkpoints(saver))[-1], (await _checkpoints(saver))[0]
    await database.write(
        lambda connection: connection.execute(
            "UPDATE checkpoints SET parent_checkpoint_id = ? WHERE checkpoint_id = ?",
            (newest.checkpoint["id"], oldest.checkpoint["id"]),
        )
    )

    found = await saver.aget_delta_channel_history(config=newest.config, channels=["never written"])

    assert found == {"never written": {"writes": []}}


async def test_what_a_checkpoint_rests_on_is_read_once_until_something_is_written(database: Database) -> None:
    saver = CheckpointSaver(database)
    graph = compile_graph(saver)
    await play_turn(graph, "t", "one")
    config = (await _checkpoints(saver))[0].config
    seen: list[str] = []

    async def read() -> int:
        seen.clear()
        await saver.aget_delta_channel_history(config=config, channels=_CHANNELS)
        return len(seen)

    await database.run(lambda connection: connection.set_trace_callback(seen.append))
    statements = [await read(), await read()]
    await saver.aput_writes(config, [("other", 1)], "task")
    statements.append(await read())

    assert (statements[0] > 0, statements[1], statements[2]) == (True, 0, statements[0])
