import os
import time
from pathlib import Path

import pytest

from graph_agent.ports import Intent, Outcome
from graph_agent.ports.background import NewShell, ShellEnding
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.background_shells import SqliteShells
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.journal import INLINE_BYTES, SqliteJournal
from graph_agent.storage.sqlite.pruning import GarbageResult, collect_garbage
from tests.fakes.stepping_clock import SteppingClock

_LATER_S = 2 * 3600


@pytest.fixture
def journal(database: Database, blobs: FileBlobs, clock: SteppingClock) -> SqliteJournal:
    return SqliteJournal(database, blobs, clock)


def age(blobs: FileBlobs) -> None:
    """Make every file look as if it had been written long ago."""
    long_ago = time.time() - _LATER_S
    for path in blobs.folder.rglob("*"):
        os.utime(path, (long_ago, long_ago))


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


async def test_what_a_row_names_stays_even_through_an_outcome_that_is_a_blob(
    database: Database, blobs: FileBlobs, journal: SqliteJournal
) -> None:
    before, inner = blobs.put(b"before"), blobs.put(b"whole output")
    await journal.claim("t", "c", 1, "life", Intent("/w/a", "d", "e", before))
    await journal.finish("t", "c", 1, "life", Outcome("success", f"{'x' * INLINE_BYTES} {inner}"))
    gone = blobs.put(b"nobody names this")
    age(blobs)

    collected = await database.run(lambda connection: collect_garbage(connection, blobs))

    assert collected.files == 1
    assert (blobs.get(before), blobs.get(inner)) == (b"before", b"whole output")
    assert gone.removeprefix("blob:sha256:")[2:] not in names(blobs.folder)
    assert [row.is_finished for row in await journal.rows("t", "c")] == [True]


async def test_what_was_just_put_stays_and_so_does_what_was_put_again(database: Database, blobs: FileBlobs) -> None:
    again = blobs.put(b"old")
    age(blobs)
    blobs.put(b"old")
    new = blobs.put(b"new")

    assert await database.run(lambda connection: collect_garbage(connection, blobs)) == GarbageResult()
    assert (blobs.get(again), blobs.get(new)) == (b"old", b"new")


async def test_the_spool_of_a_call_that_may_still_run_stays_and_that_of_a_finished_one_goes(
    database: Database, blobs: FileBlobs, journal: SqliteJournal
) -> None:
    for call_id in ("runs", "ended"):
        await journal.claim("t", call_id, 1, "life", None)
        blobs.spool("t", call_id, 1).write_bytes(b"output")
    await journal.finish("t", "ended", 1, "life", Outcome("success", "output"))
    age(blobs)

    assert await database.run(lambda connection: collect_garbage(connection, blobs)) == GarbageResult(
        1, len(b"output")
    )
    assert blobs.spool("t", "runs", 1).exists()


async def test_what_a_running_background_shell_writes_stays_and_goes_when_it_has_ended(
    database: Database, blobs: FileBlobs, journal: SqliteJournal, clock: SteppingClock
) -> None:
    shells = SqliteShells(database, clock)
    for call_id in ("runs", "ended"):
        await journal.claim("t", call_id, 1, "life", None)
        await journal.finish("t", call_id, 1, "life", Outcome("success", ""))
        await shells.add(NewShell("t", call_id, 1, "npm start", "/"))
    await shells.end(2, ShellEnding("exited", 0))
    files = [Path(f"{blobs.spool('t', call_id, 1)}{end}") for call_id in ("runs", "ended") for end in ("", ".code")]
    for file in files:
        file.write_bytes(b"0")
    age(blobs)

    await database.run(lambda connection: collect_garbage(connection, blobs))

    assert [file.exists() for file in files] == [True, True, False, False]
