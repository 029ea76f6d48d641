import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base.id import uuid6
from langgraph.types import Command

from graph_agent.errors import DamagedDatabase, InternalError
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver, SqliteBarrier, time_in
from graph_agent.storage.sqlite.database import Database
from tests.graph_agent.storage.sqlite.looking import content_of, execute, opened, rows, statements_of
from tests.graph_agent.storage.sqlite.process import ROOT
from tests.graph_agent.storage.sqlite.small_graph import Graph, compile_graph, config_of, play_turn


def _checkpoint(number: int) -> Any:
    maps: Any = {"channel_values": {}, "channel_versions": {}, "versions_seen": {}}
    return {"v": 4, "id": str(number), "ts": "2026-01-01T00:00:00+00:00", **maps}


async def _put(saver: CheckpointSaver, parent: Any = None) -> Any:
    number = 1 if parent is None else int(parent["configurable"]["checkpoint_id"]) + 1
    metadata: Any = {"source": "loop", "step": number}
    return await saver.aput(parent or config_of("t"), _checkpoint(number), metadata, {})


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


async def test_a_write_and_a_checkpoint_take_one_short_transaction(
    database: Database, saver: CheckpointSaver
) -> None:
    config = await _put(saver)
    seen = await statements_of(database)

    await saver.aput_writes(config, [("a", 1), ("b", 2)], "task")
    of_writes = seen.copy()
    seen.clear()
    await _put(saver, config)

    assert of_writes == ["BEGIN", "INSERT", "INSERT", "COMMIT"]
    assert seen == ["BEGIN", "SELECT", "INSERT", "UPDATE", "COMMIT"]


async def test_a_checkpoint_that_only_a_decision_follows_is_synced_by_the_next_one(database: Database) -> None:
    graph = compile_graph(CheckpointSaver(database, deciding=["observe"]))
    level, synced = ["FULL"], []

    def note(statement: str) -> None:
        if statement.startswith("PRAGMA synchronous="):
            level[0] = statement.rpartition("=")[2]
        elif statement.startswith("\nINSERT INTO checkpoints"):
            synced.append(level[0])

    await database.run(lambda _: opened(database).set_trace_callback(note))
    await play_turn(graph, "t", "one")

    # Those followed by: START, ask_model, ask_person, mark, run, observe, nothing.
    assert synced == ["FULL", "FULL", "FULL", "FULL", "FULL", "NORMAL", "FULL"]


async def test_statements_per_turn_do_not_grow_with_the_thread(database: Database, graph: Graph) -> None:
    await play_turn(graph, "t", "1")
    seen = await statements_of(database)

    counts = []
    for turn in range(2, 7):
        seen.clear()
        await play_turn(graph, "t", str(turn))
        counts.append(Counter(word for word in seen if word != "SELECT"))

    assert counts == [counts[0]] * 5


async def test_a_value_the_state_may_not_hold_changes_nothing(database: Database, saver: CheckpointSaver) -> None:
    config = await _put(saver)
    before = await content_of(database, "checkpoints", "writes")

    with pytest.raises(InternalError):
        await saver.aput_writes(config, [("a", 1), ("b", {1, 2})], "task")

    assert await content_of(database, "checkpoints", "writes") == before


async def test_a_crafted_checkpoint_is_refused(database: Database, saver: CheckpointSaver) -> None:
    await _put(saver)
    await execute(database, "UPDATE checkpoints SET type = 'pickle'")

    with pytest.raises(DamagedDatabase, match="'pickle'"):
        await saver.aget_tuple(config_of("t"))


async def test_a_deleted_thread_loses_its_facts_and_others_keep_theirs(
    database: Database, saver: CheckpointSaver, graph: Graph
) -> None:
    for thread_id in ("gone", "kept"):
        await play_turn(graph, thread_id, "one")
        await execute(
            database, "INSERT INTO journal VALUES (?, 'c', 1, '', '', ''" + ", NULL" * 6 + ", 0)", thread_id
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


async def test_the_barrier_proves_a_checkpoint_with_one_statement(
    database: Database, saver: CheckpointSaver
) -> None:
    await saver.aput(config_of("t"), _checkpoint(1), {}, {})
    seen = await statements_of(database)

    assert await SqliteBarrier(database).wait("t", "1") is True
    assert seen == ["SELECT"]
    # One of another thread, or one that never comes, proves nothing.
    assert await SqliteBarrier(database, timeout_s=0).wait("other", "1") is False
    assert await SqliteBarrier(database, timeout_s=0.02).wait("t", "2") is False


async def test_the_barrier_waits_for_a_checkpoint_that_is_on_its_way(
    database: Database, saver: CheckpointSaver
) -> None:
    waiting = asyncio.create_task(SqliteBarrier(database).wait("t", "1"))
    await asyncio.sleep(0.03)
    was_early = waiting.done()

    await saver.aput(config_of("t"), _checkpoint(1), {}, {})

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
        await saver.aput(config_of("odd" if number % 2 else "even"), _checkpoint(number), metadata, {})

    assert [found.checkpoint["id"] async for found in saver.alist(config, **options)] == list(expected)


@pytest.mark.slow
def test_a_kill_before_any_statement_loses_nothing_acknowledged_and_leaves_everything_consistent(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-m", "tests.graph_agent.storage.sqlite.sweep", str(tmp_path)]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300).stdout

    runs = [json.loads(line) for line in output.splitlines()]

    lost = [run for run in runs if set(run["acknowledged"]) - set(run["there"])]
    inconsistent = [run for run in runs if not run["fits"]]
    half_done = [run for run in runs if len(run["there"]) > len(run["acknowledged"]) + 1]
    assert (lost, inconsistent, half_done) == ([], [], [])
    assert [run["survived"] for run in runs] == [False] * (len(runs) - 1) + [True]
    assert len(runs) > 30
    assert runs[-1]["there"] == ["checkpoint 1", "checkpoint 2", "claim", "decision", "finish", "writes"]
