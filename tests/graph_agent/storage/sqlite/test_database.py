import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from graph_agent.errors import InternalError, StorageError
from graph_agent.storage import Connection
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.migrations import SCHEMA_VERSION
from tests.graph_agent.storage.sqlite.looking import execute, private_modes, rows, statements_of
from tests.graph_agent.storage.sqlite.process import start

_INSERT = "INSERT INTO inbox (thread_id, text, queued_by, queued_at) VALUES ('t', ?, '', '')"


async def _texts(database: Database) -> list[str]:
    return [text for (text,) in await rows(database, "SELECT text FROM inbox")]


def _insert(text: str) -> Callable[[Connection], int]:
    return lambda connection: connection.execute(_INSERT, (text,)).rowcount


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
async def test_everything_it_creates_is_private_even_under_an_open_umask(database_path: Path) -> None:
    async with await Database.open(database_path) as database:
        await execute(database, _INSERT, "x")

        assert private_modes(database_path.parents[1]) == {
            "data": "0o700",
            "agent.db": "0o600",
            "agent.db-shm": "0o600",
            "agent.db-wal": "0o600",
            "agent.db.locks": "0o700",
            "open.lock": "0o600",
        }


async def test_an_existing_folder_keeps_its_permissions(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)

    await (await Database.open(tmp_path / "agent.db")).close()

    assert oct(tmp_path.stat().st_mode & 0o777) == "0o755"


async def test_it_syncs_fully_writes_ahead_and_waits_for_others(database: Database) -> None:
    settings = [await rows(database, f"PRAGMA {name}") for name in ("journal_mode", "synchronous", "busy_timeout")]

    assert settings == [[("wal",)], [(2,)], [(30_000,)]]


async def test_work_runs_on_one_other_thread_in_the_order_it_was_requested(database: Database) -> None:
    order: list[tuple[int, int]] = []

    await asyncio.gather(
        *(database.run(lambda _, n=n: order.append((n, threading.get_ident()))) for n in range(50))  # type: ignore[misc]  # a default binds the number
    )

    assert [n for n, _ in order] == list(range(50))
    assert len({thread for _, thread in order}) == 1
    assert order[0][1] != threading.get_ident()


async def test_a_write_is_one_transaction_of_three_statements(database: Database) -> None:
    seen = await statements_of(database)

    await execute(database, _INSERT, "x")

    assert seen == ["BEGIN", "INSERT", "COMMIT"]


async def test_a_write_that_need_not_be_synced_is_not_and_the_next_one_is_again(database: Database) -> None:
    def write(connection: Connection) -> int:
        connection.execute(_INSERT, ("x",))
        level: int = connection.execute("PRAGMA synchronous").fetchone()[0]
        return level

    def fail(_: Connection) -> None:
        raise LookupError("half way")

    levels = [await database.write(write, synced=False), await database.write(write)]
    with pytest.raises(LookupError):
        await database.write(fail, synced=False)

    assert levels == [1, 2]
    assert (await rows(database, "PRAGMA synchronous"), await _texts(database)) == ([(2,)], ["x", "x"])


def _where_and_how(connection: Connection) -> tuple[bool, list[int]]:
    """Whether this is the thread of the tests; how it syncs, waits for others and copies the log back."""
    settings = ("synchronous", "busy_timeout", "wal_autocheckpoint")
    found = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in settings]
    return threading.current_thread() is threading.main_thread(), found


async def test_quick_work_runs_on_the_thread_of_the_caller_and_waits_for_nothing(database: Database) -> None:
    assert await database.quick_read(_where_and_how) == (True, [2, 0, 0])
    assert await database.quick_write(_where_and_how) == (True, [1, 0, 0])
    assert await database.write(_where_and_how) == (False, [2, 30_000, 1000])
    assert await database.quick_read(_where_and_how) == (True, [2, 0, 0])


async def test_quick_work_waits_behind_what_was_requested_before_it(database: Database) -> None:
    may_continue = threading.Event()
    before = asyncio.create_task(
        database.write(lambda connection: may_continue.wait(10) and _insert("first")(connection))
    )
    await asyncio.sleep(0)
    after = asyncio.create_task(
        database.quick_write(lambda connection: connection.execute("SELECT text FROM inbox").fetchall())
    )
    await asyncio.sleep(0)
    may_continue.set()

    assert (await after, await before) == ([("first",)], 1)


async def test_quick_work_that_another_process_blocks_is_done_later_while_the_loop_turns(
    database: Database, database_path: Path
) -> None:
    with closing(sqlite3.connect(database_path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        writing = asyncio.create_task(database.quick_write(_insert("late")))
        await asyncio.sleep(0.05)
        had_waited = not writing.done()
        other.execute("COMMIT")

    assert (had_waited, await writing, await _texts(database)) == (True, 1, ["late"])


async def test_quick_work_that_fails_leaves_nothing_and_names_the_fault(database: Database) -> None:
    def fail(connection: Connection) -> None:
        connection.execute(_INSERT, ("x",))
        connection.execute("SELECT * FROM nowhere")

    with pytest.raises(StorageError, match="no such table: nowhere"):
        await database.quick_write(fail)

    assert await database.quick_read(_where_and_how) == (True, [2, 0, 0])
    assert await _texts(database) == []


async def test_a_write_that_raises_leaves_nothing_behind(database: Database) -> None:
    def fail(connection: Connection) -> None:
        connection.execute(_INSERT, ("x",))
        raise LookupError("half way")

    with pytest.raises(LookupError, match="half way"):
        await database.write(fail)

    assert await _texts(database) == []


async def test_a_cancelled_caller_waits_for_its_statement_and_then_is_cancelled(database: Database) -> None:
    entered, may_continue = threading.Event(), threading.Event()

    def slow(connection: Connection) -> None:
        entered.set()
        may_continue.wait(10)
        connection.execute(_INSERT, ("kept",))

    task = asyncio.create_task(database.write(slow))
    await asyncio.to_thread(entered.wait, 10)
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0.01)
    was_done_early = task.done()
    may_continue.set()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert (was_done_early, await _texts(database)) == (False, ["kept"])


async def test_the_loop_keeps_turning_while_the_database_works(database: Database) -> None:
    may_continue = threading.Event()
    work = asyncio.create_task(database.run(lambda _: may_continue.wait(10)))

    await asyncio.sleep(0)
    may_continue.set()

    assert await work is True


async def test_closing_finishes_what_was_requested_and_may_be_done_twice(database_path: Path) -> None:
    database = await Database.open(database_path)
    writes = [asyncio.create_task(database.write(_insert("x"))) for _ in range(20)]
    await asyncio.sleep(0)

    await database.close()
    await database.close()

    assert await asyncio.gather(*writes) == [1] * 20
    with pytest.raises(InternalError, match=r"agent\.db.* was used after it was closed"):
        await database.run(lambda _: None)


async def test_sqlite_errors_are_raised_as_storage_errors_with_their_cause(database: Database) -> None:
    with pytest.raises(StorageError, match=r"cannot use the database .*agent\.db.*no such table: no") as caught:
        await database.run(lambda connection: connection.execute("SELECT * FROM nowhere"))

    assert isinstance(caught.value.__cause__, sqlite3.OperationalError)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "said", "messages"),
    [("open", f"opened version {SCHEMA_VERSION}\n", 0), ("write_much", "written\n", 240)],
)
def test_six_processes_open_and_write_a_new_database_at_once(
    database_path: Path, command: str, said: str, messages: int
) -> None:
    processes = [start(command, database_path) for _ in range(6)]

    outputs = [process.communicate(timeout=50)[0] for process in processes]

    assert outputs == [said] * 6
    with closing(sqlite3.connect(database_path)) as connection:
        assert connection.execute("SELECT count(*) FROM inbox").fetchone() == (messages,)


def test_a_full_disk_is_a_clear_error_and_loses_nothing_acknowledged(database_path: Path) -> None:
    acknowledged, error, *_ = start("fill", database_path).communicate(timeout=50)[0].splitlines()

    assert int(acknowledged) > 1
    assert "StorageError" in error
    assert "the disk is full or a size limit was reached" in error
    with closing(sqlite3.connect(database_path)) as connection:
        assert connection.execute("SELECT count(*) FROM inbox").fetchone() == (int(acknowledged),)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_a_cursor_never_leaves_the_thread_that_its_statement_belongs_to(database: Database) -> None:
    returned: list[object] = [
        await database.run(lambda connection: connection.execute("SELECT 1")),
        await database.write(lambda connection: connection.executemany("DELETE FROM inbox WHERE id = ?", [(1,)])),
    ]

    assert returned == [None, None]


@pytest.mark.parametrize("harm", ["removed", "replaced", "moved away with its folder"])
async def test_a_file_that_is_no_longer_the_one_that_was_opened_takes_no_more_work(
    database_path: Path, harm: str
) -> None:
    async with await Database.open(database_path) as database:
        match harm:
            case "removed":
                database_path.unlink()
            case "replaced":
                copy = database_path.with_name("copy")
                copy.write_bytes(database_path.read_bytes())
                copy.replace(database_path)
            case _:
                database_path.parent.rename(database_path.parent.with_name("elsewhere"))

        for method in (database.write, database.run, database.quick_read):
            with pytest.raises(StorageError, match="was removed or replaced while this process used it"):
                await method(lambda connection: connection.execute("DELETE FROM inbox"))
