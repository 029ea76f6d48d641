import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from graph_agent.storage.sqlite.checkpointer import CheckpointSaver, SqliteBarrier
from graph_agent.storage.sqlite.database import Database
from tests.graph_agent.storage.sqlite.looking import opened, statements_of
from tests.graph_agent.storage.sqlite.process import ROOT
from tests.graph_agent.storage.sqlite.small_graph import (
    Graph,
    compile_graph,
    config_of,
    empty_checkpoint,
    play_turn,
    put_checkpoint,
)


async def test_a_write_and_a_checkpoint_take_one_short_transaction(
    database: Database, saver: CheckpointSaver
) -> None:
    config = await put_checkpoint(saver)
    seen = await statements_of(database)

    await saver.aput_writes(config, [("a", 1), ("b", 2)], "task")
    of_writes = seen.copy()
    seen.clear()
    await put_checkpoint(saver, config)

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


async def test_the_barrier_proves_a_checkpoint_with_one_statement(
    database: Database, saver: CheckpointSaver
) -> None:
    await saver.aput(config_of("t"), empty_checkpoint(1), {}, {})
    seen = await statements_of(database)

    assert await SqliteBarrier(database).wait("t", "1") is True
    assert seen == ["SELECT"]
    # One of another thread, or one that never comes, proves nothing.
    assert await SqliteBarrier(database, timeout_s=0).wait("other", "1") is False
    assert await SqliteBarrier(database, timeout_s=0.02).wait("t", "2") is False


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
