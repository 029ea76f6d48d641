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
from tests.graph_agent.storage.sqlite.life import ROOT
from tests.graph_agent.storage.sqlite.looking import content_of, rows, statements_of
from tests.graph_agent.storage.sqlite.small_graph import compile_graph, config_of, play_turn


async def test_a_thread_goes_on_in_another_process_where_it_stood(database: Database) -> None:
    await play_turn(compile_graph(CheckpointSaver(database)), "t", "one", answer=False)

    later = compile_graph(CheckpointSaver(database))
    state = await later.ainvoke(Command(resume={"by": "test"}), config_of("t"), durability="sync")

    assert [message.id for message in state["messages"]] == [
        "message one",
        "reply-1",
        "answer-call-1-z",
        "answer-call-1-y",
        "answer-call-1-x",
    ]
    assert {call["status"] for call in state["calls"].values()} == {"success"}


async def test_writes_of_parallel_tasks_come_back_in_the_order_they_were_applied_in(database: Database) -> None:
    saver = CheckpointSaver(database)
    graph = compile_graph(saver)
    await play_turn(graph, "t", "one")

    live = [state.values async for state in graph.aget_state_history(config_of("t"))]
    head = await graph.aget_state(config_of("t"))

    assert live[0] == head.values
    assert list(head.values["calls"]) == ["call-1-z", "call-1-y", "call-1-x"]


async def test_storing_what_a_task_wrote_takes_one_transaction(database: Database) -> None:
    saver = CheckpointSaver(database)
    config = await _put(saver)
    seen = await statements_of(database)

    await saver.aput_writes(config, [("a", 1), ("b", 2)], "task")

    assert seen == ["BEGIN", "INSERT", "INSERT", "COMMIT"]


async def test_storing_a_checkpoint_that_changes_nothing_else_takes_five_statements(database: Database) -> None:
    saver = CheckpointSaver(database)
    parent = await _put(saver)
    seen = await statements_of(database)

    await _put(saver, parent)

    assert seen == ["BEGIN", "INSERT", "UPDATE", "SELECT", "COMMIT"]


async def test_a_checkpoint_that_only_a_decision_follows_is_synced_by_the_next_one(database: Database) -> None:
    graph = compile_graph(CheckpointSaver(database, deciding=["observe"]))
    level, synced = ["FULL"], []

    def note(statement: str) -> None:
        if statement.startswith("PRAGMA synchronous="):
            level[0] = statement.rpartition("=")[2]
        elif statement.startswith("\nINSERT INTO checkpoints"):
            synced.append(level[0])

    await database.run(lambda connection: connection.set_trace_callback(note))
    await play_turn(graph, "t", "one")

    # Those followed by: START, ask_model, ask_person, mark, run, observe, nothing.
    assert synced == ["FULL", "FULL", "FULL", "FULL", "FULL", "NORMAL", "FULL"]


async def test_statements_per_turn_do_not_grow_with_the_thread(database: Database) -> None:
    graph = compile_graph(CheckpointSaver(database))
    await play_turn(graph, "t", "1")
    seen = await statements_of(database)

    counts = []
    for turn in range(2, 7):
        seen.clear()
        await play_turn(graph, "t", str(turn))
        counts.append(Counter(word for word in seen if word != "SELECT"))

    assert counts == [counts[0]] * 5


async def test_a_value_the_state_may_not_hold_leaves_the_thread_as_it_was(database: Database) -> None:
    saver = CheckpointSaver(database)
    config = await _put(saver)
    before = await content_of(database, "checkpoints", "writes")

    with pytest.raises(InternalError):
        await saver.aput_writes(config, [("a", 1), ("b", {1, 2})], "task")

    assert await content_of(database, "checkpoints", "writes") == before


async def test_a_crafted_checkpoint_is_refused_when_read(database: Database) -> None:
    saver = CheckpointSaver(database)
    await _put(saver)
    await database.write(lambda connection: connection.execute("UPDATE checkpoints SET type = 'pickle'"))

    with pytest.raises(DamagedDatabase, match="'pickle'"):
        await saver.aget_tuple(config_of("t"))


async def test_deleting_a_thread_deletes_its_facts_and_nothing_of_others(database: Database) -> None:
    saver = CheckpointSaver(database)
    graph = compile_graph(saver)
    await play_turn(graph, "gone", "one")
    await play_turn(graph, "kept", "one")
    await database.write(
        lambda connection: connection.executemany(
            "INSERT INTO journal (thread_id, call_id, attempt, owner, status, started_at) "
            "VALUES (?, 'c', 1, '', '', '')",
            [("gone",), ("kept",)],
        )
    )

    await saver.adelete_thread("gone")

    tables = ("checkpoints", "writes", "threads", "transcript", "call_log", "journal")
    content = await content_of(database, *tables)
    assert {table: {row[0] for row in found} for table, found in content.items()} == {
        name: {"kept"} for name in tables
    }


async def test_a_copied_thread_has_the_same_state_and_projections_of_its_own(database: Database) -> None:
    saver = CheckpointSaver(database)
    graph = compile_graph(saver)
    await play_turn(graph, "source", "one")

    await saver.acopy_thread("source", "copy")

    states = [(await graph.aget_state(config_of(thread))).values for thread in ("source", "copy")]
    transcripts = [
        await rows(database, "SELECT seq, message_id, body FROM transcript WHERE thread_id = ?", thread)
        for thread in ("source", "copy")
    ]
    assert states[0] == states[1]
    assert transcripts[0] == transcripts[1]


async def test_versions_of_a_channel_sort_in_the_order_they_were_given_out(database: Database) -> None:
    saver = CheckpointSaver(database)
    versions = [saver.get_next_version(None, None)]
    for _ in range(200):
        versions.append(saver.get_next_version(versions[-1], None))

    assert versions == sorted(versions)


async def test_two_graphs_on_one_database_do_not_disturb_each_other(database: Database) -> None:
    graph = compile_graph(CheckpointSaver(database))

    await asyncio.gather(*(play_turn(graph, f"t{number}", "one") for number in range(8)))

    assert await rows(database, "SELECT turns, outcome, next_nodes FROM threads") == [(1, "done", "[]")] * 8


@pytest.mark.parametrize(
    "method", ["get_tuple", "list", "put", "put_writes", "delete_thread", "get_delta_channel_history"]
)
async def test_the_blocking_methods_say_what_to_use_instead(database: Database, method: str) -> None:
    with pytest.raises(InternalError, match=f"use `a{method}`"):
        getattr(CheckpointSaver(database), method)(config_of("t"))


async def _put(saver: CheckpointSaver, parent: Any = None) -> Any:
    number = 1 if parent is None else int(parent["configurable"]["checkpoint_id"]) + 1
    checkpoint: Any = {"v": 4, "id": str(number), "ts": "2026-01-01T00:00:00+00:00", "channel_values": {}}
    return await saver.aput(parent or config_of("t"), checkpoint, {"source": "loop", "step": number}, {})


_BEFORE_1970 = 0x01B21DD213814000


def test_the_time_in_an_id_is_that_of_the_clock_and_one_that_leaves_no_room_counts_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("langgraph.checkpoint.base.id._last_v6_timestamp", None)
    now = time.time_ns() // 100 + _BEFORE_1970

    assert 0 <= time_in(str(uuid6(clock_seq=1))) - now < 10**9
    assert [time_in(odd) for odd in ("", "c1", "ffffffff-ffff-6fff-8000-000000000000")] == [0, 0, 0]


async def test_a_graph_that_is_run_on_the_thread_of_its_caller_is_told_how_to_run_it(database: Database) -> None:
    graph = compile_graph(CheckpointSaver(database))

    with pytest.raises(InternalError, match="use `aget_tuple` and `ainvoke`"):
        graph.invoke({"messages": []}, config_of("t"))


@pytest.mark.parametrize(
    "method", ["get_tuple", "list", "put", "put_writes", "delete_thread", "get_delta_channel_history"]
)
async def test_nothing_is_done_on_the_thread_of_the_caller(database: Database, method: str) -> None:
    with pytest.raises(InternalError, match=f"use `a{method}`"):
        getattr(CheckpointSaver(database), method)()


_CHECKPOINT: Any = {"v": 4, "id": "1", "ts": "2026-01-01T00:00:00+00:00", "channel_values": {}}


async def test_a_checkpoint_that_stands_is_proven_with_one_look(database: Database) -> None:
    await CheckpointSaver(database).aput(config_of("t"), _CHECKPOINT, {}, {})
    seen = await statements_of(database)

    assert await SqliteBarrier(database).wait("t", "1") is True
    assert seen == ["SELECT"]


async def test_a_checkpoint_on_its_way_is_waited_for(database: Database) -> None:
    waiting = asyncio.create_task(SqliteBarrier(database).wait("t", "1"))
    await asyncio.sleep(0.03)
    was_early = waiting.done()

    await CheckpointSaver(database).aput(config_of("t"), _CHECKPOINT, {}, {})

    assert await waiting is True
    assert not was_early


async def test_a_checkpoint_that_never_comes_is_given_up(database: Database) -> None:
    assert await SqliteBarrier(database, timeout_s=0.02).wait("t", "1") is False


async def test_a_checkpoint_of_another_thread_proves_nothing(database: Database) -> None:
    await CheckpointSaver(database).aput(config_of("other"), _CHECKPOINT, {}, {})

    assert await SqliteBarrier(database, timeout_s=0).wait("t", "1") is False


async def _fill(saver: CheckpointSaver) -> None:
    for number in range(1, 5):
        checkpoint: Any = {"v": 4, "id": str(number), "ts": "2026-01-01T00:00:00+00:00", "channel_values": {}}
        metadata: Any = {"step": number, "source": "loop" if number % 2 else "input", "o'dd \"name": [number]}
        await saver.aput(config_of("even" if number % 2 == 0 else "odd"), checkpoint, metadata, {})


async def _ids(saver: CheckpointSaver, config: RunnableConfig | None, **options: Any) -> list[str]:
    return [found.checkpoint["id"] async for found in saver.alist(config, **options)]


@pytest.mark.parametrize(
    ("config", "options", "expected"),
    [
        (None, {}, ["4", "3", "2", "1"]),
        (config_of("odd"), {}, ["3", "1"]),
        (None, {"limit": 2}, ["4", "3"]),
        (None, {"limit": 0}, []),
        (None, {"filter": {"source": "input"}}, ["4", "2"]),
        (None, {"filter": {"source": "input", "step": 2}}, ["2"]),
        (None, {"filter": {"absent": None}}, []),
        (None, {"filter": {"o'dd \"name": [3]}}, ["3"]),
        (None, {"filter": {"step') OR 1=1 --": 1}}, []),
        (config_of("odd"), {"before": {"configurable": {"thread_id": "odd", "checkpoint_id": "3"}}}, ["1"]),
    ],
)
async def test_a_listing_holds_what_was_asked_for_newest_first(
    database: Database, config: RunnableConfig | None, options: dict[str, Any], expected: list[str]
) -> None:
    saver = CheckpointSaver(database)
    await _fill(saver)

    assert await _ids(saver, config, **options) == expected


def test_a_kill_before_any_statement_loses_nothing_acknowledged_and_leaves_everything_fitting(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-m", "tests.graph_agent.storage.sqlite.sweep", str(tmp_path)]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=50).stdout

    lives = [json.loads(line) for line in output.splitlines()]

    lost = [life for life in lives if set(life["acknowledged"]) - set(life["there"])]
    unfitting = [life for life in lives if not life["fits"]]
    half_done = [life for life in lives if len(life["there"]) > len(life["acknowledged"]) + 1]
    assert (lost, unfitting, half_done) == ([], [], [])
    assert [life["survived"] for life in lives] == [False] * (len(lives) - 1) + [True]
    assert len(lives) > 30
    assert lives[-1]["there"] == ["checkpoint 1", "checkpoint 2", "claim", "decision", "finish", "writes"]
