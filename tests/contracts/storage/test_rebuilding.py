import pytest

from graph_agent.errors import DamagedDatabase
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database
from tests.graph_agent.storage.sqlite.looking import content_of, execute, rows
from tests.graph_agent.storage.sqlite.small_graph import Graph, compile_graph, config_of, play_turn


async def _checkpoints(database: Database) -> list[str]:
    return [row[0] for row in await rows(database, "SELECT checkpoint_id FROM checkpoints ORDER BY checkpoint_id")]


async def _branch(database: Database, graph: Graph, place: int) -> None:
    """Take a checkpoint up again and go on from there."""
    config = config_of("t")
    config["configurable"]["checkpoint_id"] = (await _checkpoints(database))[place]
    await graph.aupdate_state(config, None, as_node="__copy__")


@pytest.mark.parametrize("place", [15, 25, 33, 40])
@pytest.mark.parametrize("keep_turns", [1, 2, 4])
async def test_a_thread_with_branches_that_was_cut_is_rebuilt_as_it_was(
    database: Database, place: int, keep_turns: int, saver: CheckpointSaver, graph: Graph
) -> None:
    for number in range(6):
        await play_turn(graph, "t", f"turn {number}")
    await _branch(database, graph, place)
    await play_turn(graph, "t", "on the branch")
    await play_turn(graph, "t", "and on")
    await saver.prune_thread("t", keep_turns)
    await play_turn(graph, "t", "after the cut")
    before = await content_of(database)

    await saver.rebuild_projections("t")

    assert await content_of(database) == before


async def test_rebuilding_keeps_what_the_user_set(database: Database, saver: CheckpointSaver, graph: Graph) -> None:
    for number in range(4):
        await play_turn(graph, "t", f"turn {number}")
    await execute(database, "UPDATE threads SET title = 'mine', mode = 'plan'")
    await saver.prune_thread("t", 2)
    before = await content_of(database)
    await execute(database, "DELETE FROM transcript")

    await saver.rebuild_projections("t")

    after = await content_of(database)
    said = [[row[5] for row in content["transcript"]] for content in (before, after)]
    assert said[0] == said[1]
    assert (after["threads"], after["call_log"]) == (before["threads"], before["call_log"])


async def test_torn_metadata_of_a_checkpoint_is_named_as_damage(database: Database, saver: CheckpointSaver) -> None:
    await play_turn(compile_graph(saver), "t", "turn")
    await execute(database, "UPDATE checkpoints SET metadata = ?", b"'")

    with pytest.raises(DamagedDatabase, match="its metadata cannot be read"):
        await saver.rebuild_projections("t")
