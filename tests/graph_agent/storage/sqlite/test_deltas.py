from langgraph.checkpoint.base import CheckpointTuple

from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database
from tests.graph_agent.storage.sqlite.looking import opened
from tests.graph_agent.storage.sqlite.small_graph import Graph, config_of, play_turn

_CHANNELS = ["messages", "calls", "never written"]


async def _checkpoints(saver: CheckpointSaver) -> list[CheckpointTuple]:
    return [found async for found in saver.alist(config_of("t"))]


async def test_the_history_of_a_checkpoint_is_read_once_until_something_is_written(
    database: Database, saver: CheckpointSaver, graph: Graph
) -> None:
    await play_turn(graph, "t", "one")
    config = (await _checkpoints(saver))[0].config
    seen: list[str] = []

    async def read() -> int:
        seen.clear()
        await saver.aget_delta_channel_history(config=config, channels=_CHANNELS)
        return len(seen)

    await database.run(lambda _: opened(database).set_trace_callback(seen.append))
    statements = [await read(), await read()]
    await saver.aput_writes(config, [("other", 1)], "task")
    statements.append(await read())

    assert (statements[0] > 0, statements[1], statements[2]) == (True, 0, statements[0])
