import asyncio
import time
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.types import Command

from graph_agent.errors import DamagedDatabase, InternalError
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver, SqliteBarrier, time_in
from graph_agent.storage.sqlite.database import Database
from tests.contracts.storage.conftest import Engine
from tests.graph_agent.storage.sqlite.looking import content_of, execute, rows
from tests.graph_agent.storage.sqlite.small_graph import (
    Graph,
    compile_graph,
    config_of,
    empty_checkpoint,
    play_turn,
    put_checkpoint,
)


async def test_every_capability_of_the_conformance_kit_is_offered_and_passes(engine: Engine) -> None:
    @checkpointer_test(name="CheckpointSaver")
    async def saver() -> AsyncGenerator[BaseCheckpointSaver[str], None]:
        async with await engine.open() as database:
            yield CheckpointSaver(database)

    report = await validate(saver)

    outcomes = {
        name: (result.detected, result.tests_failed, result.failures) for name, result in report.results.items()
    }
    assert outcomes == dict.fromkeys(outcomes, (True, 0, []))
    assert len(outcomes) == 8
    assert report.passed_all_base()


async def test_another_process_resumes_a_thread_where_it_stopped(database: Database, graph: Graph) -> None:
    await play_turn(graph, "t", "one", answer=False)

    later = compile_graph(CheckpointSaver(database))
    state = await later.ainvoke(Command(resume={"by": "test"}), config_of("t"), durability="sync")

    answers = [f"answer-call-1-{name}" for name in "zyx"]
    assert [message.id for message in state["messages"]] == ["message one", "reply-1", *answers]
    assert {call["status"] for call in state["calls"].values()} == {"success"}


async def test_writes_of_parallel_tasks_are_read_in_the_order_they_were_applied_in(graph: Graph) -> None:
    await play_turn(graph, "t", "one")

    live = [state.values async for state in graph.aget_state_history(config_of("t"))]
    head = await graph.aget_state(config_of("t"))

    assert live[0] == head.values
    assert list(head.values["calls"]) == ["call-1-z", "call-1-y", "call-1-x"]


async def test_a_value_the_state_may_not_hold_changes_nothing(database: Database, saver: CheckpointSaver) -> None:
    config = await put_checkpoint(saver)
    before = await content_of(database, "checkpoints", "writes")

    with pytest.raises(InternalError):
        await saver.aput_writes(config, [("a", 1), ("b", {1, 2})], "task")

    assert await content_of(database, "checkpoints", "writes") == before


async def test_a_crafted_checkpoint_is_refused(database: Database, saver: CheckpointSaver) -> None:
    await put_checkpoint(saver)
    await execute(database, "UPDATE checkpoints SET type = 'pickle'")

    with pytest.raises(DamagedDatabase, match="'pickle'"):
        await saver.aget_tuple(config_of("t"))


_STARTED = """
INSERT INTO journal (thread_id, call_id, attempt, owner, status, started_at) VALUES (?, 'c', 1, '', '', '')
"""


async def test_a_deleted_thread_loses_its_facts_and_others_keep_theirs(
    database: Database, saver: CheckpointSaver, graph: Graph
) -> None:
    for thread_id in ("gone", "kept"):
        await play_turn(graph, thread_id, "one")
        await execute(
            database,
            _STARTED,
            thread_id,
        )

    await saver.adelete_thread("gone")

    tables = ("checkpoints", "writes", "threads", "transcript", "call_log", "journal")
    content = await content_of(database, *tables)
    assert {table: {row[0] for row in found} for table, found in content.items()} == {
        name: {"kept"} for name in tables
    }


async def test_a_copied_thread_has_the_same_state_and_projections_of_its_own(
    database: Database, saver: CheckpointSaver, graph: Graph
) -> None:
    await play_turn(graph, "source", "one")

    await saver.acopy_thread("source", "copy")

    statement = "SELECT seq, message_id, body FROM transcript WHERE thread_id = ?"
    source, copy = [
        ((await graph.aget_state(config_of(thread))).values, await rows(database, statement, thread))
        for thread in ("source", "copy")
    ]
    assert source == copy


async def test_versions_of_a_channel_sort_in_the_order_they_were_given_out(saver: CheckpointSaver) -> None:
    versions = [saver.get_next_version(None, None)]
    for _ in range(200):
        versions.append(saver.get_next_version(versions[-1], None))

    assert versions == sorted(versions)


async def test_two_graphs_on_one_database_do_not_disturb_each_other(database: Database, graph: Graph) -> None:
    await asyncio.gather(*(play_turn(graph, f"t{number}", "one") for number in range(8)))

    assert await rows(database, "SELECT turns, outcome, next_nodes FROM threads") == [(1, "done", "[]")] * 8


@pytest.mark.parametrize(
    "method", ["get_tuple", "list", "put", "put_writes", "delete_thread", "get_delta_channel_history"]
)
async def test_the_blocking_methods_say_what_to_use_instead(saver: CheckpointSaver, method: str) -> None:
    for arguments in ((), (config_of("t"),)):
        with pytest.raises(InternalError, match=f"use `a{method}` and `ainvoke`"):
            getattr(saver, method)(*arguments)


async def test_a_graph_that_runs_on_the_thread_of_its_caller_is_refused(graph: Graph) -> None:
    with pytest.raises(InternalError, match="use `aget_tuple` and `ainvoke`"):
        graph.invoke({"messages": []}, config_of("t"))


_BEFORE_1970 = 0x01B21DD213814000


def test_the_time_in_an_id_is_that_of_the_clock_and_one_that_leaves_no_room_is_ignored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("langgraph.checkpoint.base.id._last_v6_timestamp", None)
    now = time.time_ns() // 100 + _BEFORE_1970

    assert 0 <= time_in(str(uuid6(clock_seq=1))) - now < 10**9
    assert [time_in(odd) for odd in ("", "c1", "ffffffff-ffff-6fff-8000-000000000000")] == [0, 0, 0]


async def test_the_barrier_waits_for_a_checkpoint_that_is_on_its_way(
    database: Database, saver: CheckpointSaver
) -> None:
    waiting = asyncio.create_task(SqliteBarrier(database).wait("t", "1"))
    await asyncio.sleep(0.03)
    was_early = waiting.done()

    await saver.aput(config_of("t"), empty_checkpoint(1), {}, {})

    assert (was_early, await waiting) == (False, True)


_BEFORE_3 = {"configurable": {"thread_id": "odd", "checkpoint_id": "3"}}


@pytest.mark.parametrize(
    ("config", "options", "expected"),
    [
        (None, {}, "4321"),
        (config_of("odd"), {}, "31"),
        (None, {"limit": 2}, "43"),
        (None, {"limit": 0}, ""),
        (None, {"filter": {"source": "input"}}, "42"),
        (None, {"filter": {"source": "input", "step": 2}}, "2"),
        (None, {"filter": {"absent": None}}, ""),
        (None, {"filter": {"o'dd \"name": [3]}}, "3"),
        (None, {"filter": {"step') OR 1=1 --": 1}}, ""),
        (config_of("odd"), {"before": _BEFORE_3}, "1"),
    ],
)
async def test_a_listing_holds_what_was_asked_for_newest_first(
    saver: CheckpointSaver, config: RunnableConfig | None, options: dict[str, Any], expected: str
) -> None:
    for number in range(1, 5):
        metadata: Any = {"step": number, "source": "loop" if number % 2 else "input", "o'dd \"name": [number]}
        await saver.aput(config_of("odd" if number % 2 else "even"), empty_checkpoint(number), metadata, {})

    assert [found.checkpoint["id"] async for found in saver.alist(config, **options)] == list(expected)
