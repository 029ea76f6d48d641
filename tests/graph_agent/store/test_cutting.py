import pytest

from graph_agent.errors import UsageError
from graph_agent.ports import Rewind, TakenAlong
from graph_agent.store.cutting import Cut
from graph_agent.store.database import Database
from graph_agent.store.forking import Fork
from graph_agent.store.rewinds import SqliteRewinds
from graph_agent.store.saver import CheckpointSaver
from tests.fakes.stepping_clock import SteppingClock
from tests.graph_agent.store.looking import content_of, rows
from tests.graph_agent.store.small_graph import Graph, compile_graph, config_of, play_turn

_TURNS = 12


@pytest.fixture
async def graph(database: Database) -> Graph:
    graph = compile_graph(CheckpointSaver(database))
    for number in range(_TURNS):
        await play_turn(graph, "t", f"{number} {'x' * 4000}")
    return graph


async def checkpoints(database: Database, thread_id: str = "t") -> list[str]:
    found = await rows(
        database, "SELECT checkpoint_id FROM checkpoints WHERE thread_id = ? ORDER BY checkpoint_id", thread_id
    )
    return [row[0] for row in found]


async def state_at(graph: Graph, checkpoint_id: str, thread_id: str = "t") -> object:
    config = config_of(thread_id)
    config["configurable"]["checkpoint_id"] = checkpoint_id
    snapshot = await graph.aget_state(config)
    return snapshot.values, snapshot.next


async def test_the_last_turns_stay_as_they_were_and_all_before_is_noted_as_pruned(
    database: Database, graph: Graph
) -> None:
    before = await checkpoints(database)
    states = {place: await state_at(graph, place) for place in before}
    told = await content_of(database)

    cut = await CheckpointSaver(database).cut("t", 3)

    left = await checkpoints(database)
    firsts = [len(states[place][0].get("messages", ())) for place in left[:1]]  # type: ignore[index]  # values of it
    assert cut == Cut(len(before) - len(left))
    assert firsts == [(_TURNS - 3) * 5]
    assert {place: await state_at(graph, place) for place in left} == {place: states[place] for place in left}
    assert [row[0] for row in await rows(database, "SELECT checkpoint_id FROM pruned ORDER BY 1")] == before[
        : -len(left)
    ]
    assert await content_of(database) == told


async def test_cut_again_nothing_changes_and_the_next_turn_goes_on(database: Database, graph: Graph) -> None:
    saver = CheckpointSaver(database)
    await saver.cut("t", 3)
    left = await checkpoints(database)

    again = await saver.cut("t", 3)
    after = await checkpoints(database)
    await play_turn(graph, "t", "more")

    said = [row[0] for row in await rows(database, "SELECT count(*) FROM transcript WHERE role = 'user'")]
    assert (again, after, said) == (Cut(), left, [_TURNS + 1])


async def test_one_checkpoint_alone_is_enough_for_a_thread_of_one_turn_that_is_kept(
    database: Database, graph: Graph
) -> None:
    saver = CheckpointSaver(database)
    await saver.cut("t", 1)
    first, *_ = await checkpoints(database)
    await saver.fork(Fork("t", first, "f", "2026-11-28T12:00:00.000Z"))

    assert await checkpoints(database, "f") == [first]
    assert await state_at(graph, first, "f") == await state_at(graph, first)
    shown = await rows(database, "SELECT count(*), max(seq) FROM transcript WHERE thread_id = 'f'")
    assert shown == [((_TURNS - 1) * 5, (_TURNS - 1) * 5)]
    assert await rows(database, "SELECT turns FROM threads WHERE thread_id = 'f'") == [(_TURNS - 1,)]


async def test_a_branch_left_behind_that_is_kept_in_part_is_whole_too(database: Database, graph: Graph) -> None:
    config = config_of("t")
    config["configurable"]["checkpoint_id"] = (await checkpoints(database))[20]
    await graph.aupdate_state(config, None, as_node="__copy__")
    copied = (await checkpoints(database))[-1]
    await play_turn(graph, "t", "on the branch")
    states = {place: await state_at(graph, place) for place in await checkpoints(database)}

    await CheckpointSaver(database).cut("t", 1)

    left = await checkpoints(database)
    assert left[0] == copied
    assert {place: await state_at(graph, place) for place in left} == {place: states[place] for place in left}


async def test_snapshots_between_the_cut_and_the_newest_go_and_every_state_can_still_be_rebuilt(
    database: Database,
) -> None:
    saver = CheckpointSaver(database)
    graph = compile_graph(saver)
    for number in range(110):
        await play_turn(graph, "t", f"{number} {'x' * 4000}")
    big = "SELECT count(*) FROM checkpoints WHERE length(checkpoint) > 32768"
    before = (await rows(database, big))[0][0]
    states = {place: await state_at(graph, place) for place in (await checkpoints(database))[-200::20]}

    cut = await saver.cut("t", 1000)

    assert (before, cut, await rows(database, big)) == (3, Cut(0, 2), [(1,)])
    assert {place: await state_at(graph, place) for place in states} == states


async def test_a_thread_is_tidied_by_itself_only_once_it_has_grown_a_fifth_past_what_is_kept(
    database: Database, graph: Graph
) -> None:
    saver = CheckpointSaver(database)

    assert await saver.tidy("t", 10) == Cut()
    assert (await saver.tidy("t", 5)).checkpoints > 0
    assert await saver.tidy("t", 5) == Cut()


async def test_the_space_goes_back_to_the_file(database: Database, graph: Graph) -> None:
    await rows(database, "PRAGMA wal_checkpoint(TRUNCATE)")
    before = database.path.stat().st_size

    await CheckpointSaver(database).tidy("t", 2)

    assert await rows(database, "PRAGMA freelist_count") == [(0,)]
    assert database.path.stat().st_size < before


async def test_a_thread_whose_rewind_was_broken_off_is_left_alone(database: Database, graph: Graph) -> None:
    await SqliteRewinds(database, SteppingClock()).plan(Rewind("t", "c1", "c9", "both"))

    assert await CheckpointSaver(database).cut("t", 1) == Cut()


async def test_a_sub_agent_that_a_broken_off_rewind_takes_along_is_left_alone_until_it_is_finished(
    database: Database, graph: Graph
) -> None:
    rewinds, saver = SqliteRewinds(database, SteppingClock()), CheckpointSaver(database)
    old = (await checkpoints(database))[1]
    noted = await rewinds.plan(Rewind("parent", "c1", "c9", "both", sub_agents=(TakenAlong("t", old, "head", ()),)))

    between = await saver.cut("t", 1)
    await rewinds.finish(noted)

    assert (between, (await saver.cut("t", 1)).checkpoints > 0) == (Cut(), True)


async def test_a_rewind_is_not_begun_once_a_sub_agent_it_takes_along_was_pruned(
    database: Database, graph: Graph
) -> None:
    rewinds, old = SqliteRewinds(database, SteppingClock()), (await checkpoints(database))[1]
    await CheckpointSaver(database).cut("t", 1)

    with pytest.raises(UsageError, match="thread t was pruned or deleted meanwhile; nothing was done"):
        await rewinds.plan(Rewind("parent", "c1", "c9", "both", sub_agents=(TakenAlong("t", old, "head", ()),)))

    assert await rewinds.unfinished("parent") is None


@pytest.mark.parametrize("thread_id", ["t", "unknown"])
async def test_a_thread_with_nothing_to_cut_is_left_alone(database: Database, graph: Graph, thread_id: str) -> None:
    before = await checkpoints(database)

    assert await CheckpointSaver(database).cut(thread_id, _TURNS) == Cut()
    assert await checkpoints(database) == before
