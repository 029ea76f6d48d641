import pytest

from graph_agent.ports import Claim, Journal, Outcome
from graph_agent.ports.background import NewShell, ShellEnding, ShellRecord
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.journal import INLINE_BYTES, SqliteJournal, SqliteShells
from graph_agent.storage.sqlite.projections import delete_threads
from tests.fakes.stepping_clock import SteppingClock
from tests.graph_agent.storage.sqlite.looking import execute, rows

_DONE = Outcome("success", "ok", summary="read it", metadata={"exit_code": 0})


async def test_a_large_outcome_is_stored_in_a_blob_that_the_row_names(
    database: Database, journal: Journal, blobs: FileBlobs
) -> None:
    await journal.claim("t", "c", 1, "run", None)
    await journal.finish("t", "c", 1, "run", Outcome("success", "x" * INLINE_BYTES))

    (stored,) = await rows(database, "SELECT length(outcome), json_extract(outcome, '$.blob') FROM journal")

    assert stored[0] < 100
    assert b"x" * INLINE_BYTES in blobs.get(stored[1])


_PLANNED = """
INSERT INTO call_log (thread_id, call_id, seq, tool_name, status, risk, record, checkpoint_id, updated_at)
VALUES ('t', 'planned', 1, 'bash', 'pending', '', '{}', '1', '')
"""


async def test_calls_of_the_call_log_are_known_too(database: Database, journal: Journal) -> None:
    await execute(database, _PLANNED)

    assert await journal.known_ids("t", ["planned", "new"]) == {"planned"}


async def test_a_reverted_attempt_is_no_result_but_keeps_its_number(database: Database, journal: Journal) -> None:
    await journal.claim("t", "c", 1, "run", None)
    await journal.finish("t", "c", 1, "run", _DONE)
    await execute(database, "UPDATE journal SET reverted = 1")

    assert await journal.rows("t", "c") == []
    assert await journal.claim("t", "c", 1, "run", None) == Claim(won=False)
    assert await journal.claim("t", "c", 2, "run", None) == Claim(won=True)


_NEW = NewShell("t1", "c1", 1, "npm run dev", "/work")


@pytest.fixture
def shells(database: Database, clock: SteppingClock) -> SqliteShells:
    return SqliteShells(database, clock)


async def test_a_shell_is_found_with_the_journal_row_that_started_it_also_after_a_rewind(
    database: Database, shells: SqliteShells, journal: SqliteJournal
) -> None:
    await journal.claim("t1", "c1", 1, "run", None)
    await journal.record_process("t1", "c1", 1, 4711, "99")
    number = await shells.add(_NEW)
    await execute(database, "UPDATE journal SET reverted = 1")

    [found] = await shells.running("t1")

    row = found.journal
    assert (number, found.shell, found.ending, await shells.of_thread("t1")) == (1, _NEW, None, [found])
    assert row is not None
    assert (row.owner, row.process_group, row.process_started) == ("run", 4711, "99")


async def test_the_first_ending_is_kept(shells: SqliteShells) -> None:
    number = await shells.add(_NEW)

    first = await shells.end(number, ShellEnding("exited", 3))
    second = await shells.end(number, ShellEnding("session"))

    found = await shells.get(number)
    assert (first, second, found and found.ending, await shells.running("t1")) == (
        True,
        False,
        ShellEnding("exited", 3),
        [],
    )


async def test_how_far_a_call_has_read_is_kept(shells: SqliteShells) -> None:
    number = await shells.add(_NEW)

    await shells.read(number, "c2", 10, 25)

    found = await shells.get(number)
    assert found is not None
    assert (found.read_by, found.read_from, found.read_until) == ("c2", 10, 25)


async def test_a_number_is_not_reused_after_its_thread_is_deleted(database: Database, shells: SqliteShells) -> None:
    await shells.add(_NEW)

    await database.write(lambda connection: delete_threads(connection, ["t1"]))

    assert (await shells.of_thread("t1"), await shells.get(1), await shells.add(_NEW)) == ([], None, 2)


async def test_a_shell_is_found_even_if_its_journal_row_is_gone(shells: SqliteShells) -> None:
    number = await shells.add(_NEW)

    found: ShellRecord | None = await shells.get(number)

    assert (found and found.journal, found and found.shell) == (None, _NEW)
