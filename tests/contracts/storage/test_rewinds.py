from dataclasses import replace

import pytest

from graph_agent.ports import ExecutedAttempt, FileImage, FileRestoration, Intent, Outcome, Rewind
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.journal import SqliteJournal
from graph_agent.storage.sqlite.rewinds import SqliteRewinds, release_contents
from graph_agent.storage.sqlite.threads import SqliteFileStates
from tests.fakes.stepping_clock import SteppingClock
from tests.graph_agent.storage.sqlite.looking import execute, rows

_INTENT = Intent("/w/a", None, "after", None, None, "/w")


_WANTED = Rewind(
    "t",
    "c1",
    "c9",
    "both",
    (FileRestoration("/w/a", FileImage("after", "blob", 0o600), FileImage(), "/w"),),
    (("call", 1),),
)


@pytest.fixture
def rewinds(database: Database, clock: SteppingClock) -> SqliteRewinds:
    return SqliteRewinds(database, clock)


@pytest.fixture
async def journal(journal: SqliteJournal) -> SqliteJournal:
    await journal.claim("t", "call", 1, "run", _INTENT)
    await journal.finish("t", "call", 1, "run", Outcome("success", "done"))
    return journal


async def test_a_recorded_rewind_is_found_complete_until_it_is_finished(
    rewinds: SqliteRewinds, journal: SqliteJournal
) -> None:
    noted = await rewinds.plan(_WANTED)
    found = await rewinds.unfinished("t")
    await rewinds.finish(noted)

    assert found == noted == _WANTED
    assert (await rewinds.unfinished("t"), await rewinds.last("t")) == (None, _WANTED)
    assert [row.attempt for row in await journal.reverted("t", ["call"])] == [1]
    assert await journal.rows("t", "call") == []


async def test_undoing_a_rewind_makes_its_calls_count_again(rewinds: SqliteRewinds, journal: SqliteJournal) -> None:
    done = await rewinds.plan(_WANTED)
    await rewinds.finish(done)
    undo = await rewinds.plan(Rewind("t", "c9", "c10", "both", (), _WANTED.calls, reverts=done.number))

    await rewinds.finish(undo)

    assert await rewinds.last("t") is None
    assert [row.attempt for row in await journal.rows("t", "call")] == [1]


async def test_a_restored_file_must_be_read_again(
    rewinds: SqliteRewinds, database: Database, clock: SteppingClock
) -> None:
    states = SqliteFileStates(database, clock)
    await states.set("t", "/w/a", "after")
    await states.set("t", "/w/b", "kept")

    await rewinds.finish(await rewinds.plan(_WANTED))

    assert (await states.get("t", "/w/a"), await states.get("t", "/w/b")) == (None, "kept")


async def test_attempts_since_a_time_leave_out_those_not_started_or_reverted(
    rewinds: SqliteRewinds, journal: SqliteJournal
) -> None:
    [first] = await journal.rows("t", "call")
    await journal.claim("t", "later", 1, "run", None)
    await journal.claim("t", "not begun", 1, "run", None)
    await journal.record_interruption("t", "not begun", 1, "run", "not_started")
    [later] = await journal.rows("t", "later")

    assert await rewinds.attempts_since("t", later.started_at) == [
        ExecutedAttempt("later", 1, "executing", None, later.started_at)
    ]
    assert [one.intent for one in await rewinds.attempts_since("t", first.started_at)] == [_INTENT, None]
    await rewinds.finish(await rewinds.plan(_WANTED))
    assert [one.call_id for one in await rewinds.attempts_since("t", first.started_at)] == ["later"]


async def test_contents_that_no_undo_can_reach_are_dropped_and_the_others_kept(
    rewinds: SqliteRewinds, journal: SqliteJournal, database: Database
) -> None:
    async def contents() -> list[int]:
        await database.write(lambda connection: release_contents(connection, "t"))
        return [
            row[0]
            for row in await rows(database, "SELECT json_array_length(plan, '$.files') FROM rewinds ORDER BY id")
        ]

    stand = "INSERT INTO checkpoints (thread_id, checkpoint_id) VALUES ('t', 'c9'), ('t', 'c10'), ('t', 'c11')"
    await execute(database, stand)
    for head in ("c9", "c10", "c11"):
        await rewinds.finish(await rewinds.plan(replace(_WANTED, head=head)))
    whole = await contents()
    newest = await rewinds.last("t")
    assert newest is not None
    await rewinds.finish(
        await rewinds.plan(Rewind("t", "c11", "c12", "both", _WANTED.files, (), reverts=newest.number))
    )
    taken_back = await contents()
    await execute(database, "DELETE FROM checkpoints WHERE checkpoint_id = 'c9'")
    pruned = await contents()

    assert (whole, taken_back, pruned) == ([1, 1, 1], [1, 1, 0, 0], [0, 1, 0, 0])
    assert await rewinds.last("t") == replace(_WANTED, head="c10")
