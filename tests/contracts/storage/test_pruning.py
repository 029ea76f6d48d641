import os
import time
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from graph_agent.ports import Intent, Outcome
from graph_agent.ports.background import NewShell, ShellEnding
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.journal import INLINE_BYTES, SqliteJournal, SqliteShells
from graph_agent.storage.sqlite.pruning import GarbageResult, collect_garbage
from tests.fakes.stepping_clock import SteppingClock
from tests.graph_agent.storage.sqlite.looking import rows
from tests.graph_agent.storage.sqlite.small_graph import Graph, config_of, play_turn


async def _count(database: Database) -> int:
    count: int = (await rows(database, "SELECT count(*) FROM checkpoints"))[0][0]
    return count


@pytest.mark.slow
async def test_pruning_never_cuts_between_a_snapshot_and_the_head(
    database: Database, saver: CheckpointSaver, graph: Graph
) -> None:
    for turn in range(36):
        await play_turn(graph, "t", str(turn))
    before = await graph.aget_state(config_of("t"))
    count_before = await _count(database)

    await saver.aprune(["t"])

    after = await graph.aget_state(config_of("t"))
    assert after.values == before.values
    assert 1 < await _count(database) < count_before


async def test_a_pruned_thread_takes_the_next_turn(saver: CheckpointSaver, graph: Graph) -> None:
    await play_turn(graph, "t", "one")
    await saver.aprune(["t"])

    await play_turn(graph, "t", "two")

    head = await graph.aget_state(config_of("t"))
    assert [message.id for message in head.values["messages"] if message.type == "human"] == [
        "message one",
        "message two",
    ]


async def test_deleting_runs_leaves_the_checkpoints_of_others(database: Database, saver: CheckpointSaver) -> None:
    parent: Any = config_of("t")
    for number, run in enumerate(("first", "second"), 1):
        maps: Any = {"channel_values": {}, "channel_versions": {}, "versions_seen": {}}
        checkpoint: Any = {"v": 4, "id": str(number), "ts": "2026-01-01T00:00:00+00:00", **maps}
        metadata: Any = {"run_id": run, "source": "loop", "step": number}
        parent = await saver.aput(parent, checkpoint, metadata, {})

    await saver.adelete_for_runs(["first"])

    assert await rows(database, "SELECT checkpoint_id FROM checkpoints") == [("2",)]


async def test_after_the_newest_run_is_deleted_the_head_is_the_one_before_it(
    database: Database, saver: CheckpointSaver, graph: Graph
) -> None:
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


_LATER_S = 2 * 3600


def age(blobs: FileBlobs) -> None:
    """Make every file look as if it had been written long ago."""
    long_ago = time.time() - _LATER_S
    for path in blobs.folder.rglob("*"):
        os.utime(path, (long_ago, long_ago))


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


async def test_a_blob_that_a_row_names_stays_even_if_its_outcome_is_a_blob_itself(
    database: Database, blobs: FileBlobs, journal: SqliteJournal
) -> None:
    before, inner = blobs.put(b"before"), blobs.put(b"whole output")
    await journal.claim("t", "c", 1, "run", Intent("/w/a", "d", "e", before))
    await journal.finish("t", "c", 1, "run", Outcome("success", f"{'x' * INLINE_BYTES} {inner}"))
    gone = blobs.put(b"nobody names this")
    age(blobs)

    collected = await database.run(lambda connection: collect_garbage(connection, blobs))

    assert collected.files == 1
    assert (blobs.get(before), blobs.get(inner)) == (b"before", b"whole output")
    assert gone.removeprefix("blob:sha256:")[2:] not in names(blobs.folder)
    assert [row.is_finished for row in await journal.rows("t", "c")] == [True]


async def test_recently_stored_blobs_stay_and_so_do_blobs_that_are_stored_again(
    database: Database, blobs: FileBlobs
) -> None:
    again = blobs.put(b"old")
    age(blobs)
    blobs.put(b"old")
    new = blobs.put(b"new")

    assert await database.run(lambda connection: collect_garbage(connection, blobs)) == GarbageResult()
    assert (blobs.get(again), blobs.get(new)) == (b"old", b"new")


async def test_the_spool_of_a_finished_call_is_deleted_and_that_of_a_running_one_stays(
    database: Database, blobs: FileBlobs, journal: SqliteJournal
) -> None:
    for call_id in ("runs", "ended"):
        await journal.claim("t", call_id, 1, "run", None)
        blobs.spool("t", call_id, 1).write_bytes(b"output")
    await journal.finish("t", "ended", 1, "run", Outcome("success", "output"))
    age(blobs)

    assert await database.run(lambda connection: collect_garbage(connection, blobs)) == GarbageResult(
        1, len(b"output")
    )
    assert blobs.spool("t", "runs", 1).exists()


async def test_the_output_of_a_background_shell_is_deleted_after_its_end(
    database: Database, blobs: FileBlobs, journal: SqliteJournal, clock: SteppingClock
) -> None:
    shells = SqliteShells(database, clock)
    for call_id in ("runs", "ended"):
        await journal.claim("t", call_id, 1, "run", None)
        await journal.finish("t", call_id, 1, "run", Outcome("success", ""))
        await shells.add(NewShell("t", call_id, 1, "npm start", "/"))
    await shells.end(2, ShellEnding("exited", 0))
    files = [Path(f"{blobs.spool('t', call_id, 1)}{end}") for call_id in ("runs", "ended") for end in ("", ".code")]
    for file in files:
        file.write_bytes(b"0")
    age(blobs)

    await database.run(lambda connection: collect_garbage(connection, blobs))

    assert [file.exists() for file in files] == [True, True, False, False]
