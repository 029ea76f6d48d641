import asyncio
import select
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graph_agent.config.paths import ServerPath
from graph_agent.errors import DamagedDatabase, InternalError, NewerSchema, NothingYet, StorageError, ThreadHeld
from graph_agent.ports import SystemClock
from graph_agent.storage import (
    Connection,
    listen_for_work,
    open_blobs,
    open_database,
    open_read_store,
    server_stamp,
    server_use,
    thread_lock,
)
from graph_agent.storage.postgres.database import PostgresDatabase
from graph_agent.storage.postgres.reader import PostgresReadConnection, WorkNotices
from graph_agent.storage.sqlite.journal import SqliteShells
from graph_agent.storage.sqlite.migrations import SCHEMA_VERSION, Migration, load_migrations
from graph_agent.storage.sqlite.schema import create_tables
from graph_agent.storage.sqlite.tasks import NewTask, TaskTable
from graph_agent.storage.sqlite.threads import SqliteFileStates, ThreadTable
from tests.fakes.postgres_server import PASSWORD, PostgresServer, running_server, running_standby
from tests.scenarios.command import until

_COLUMNS = """
SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'graph_agent'
AND column_name <> 'rowid'
"""
_ANSWER = """
INSERT INTO decisions (thread_id, call_id, attempt, question, args_digest, kind, by, at)
VALUES ('t', 'c', 1, 'approval', 'd', 'approve', 'me', '2026-01-01T00:00:00Z')
"""
_LOST = "UPDATE leases SET expires_at = '2026-01-01' WHERE thread_id = 'two'"
_THREAD = "thread_id, workspace, model, mode, created_at, updated_at"
_OWN_TABLES = {"leases_now", "schema_version", "blobs"}


async def titles(database: PostgresDatabase) -> list[Any]:
    return [title for (title,) in await database.rows("SELECT title FROM threads ORDER BY thread_id", ())]


async def add(database: PostgresDatabase, thread_id: str, title: str = "") -> None:
    table = ThreadTable(database, SystemClock())
    await table.create(thread_id, "/w", "m", "default")
    await table.set_title(thread_id, title or thread_id)


async def test_a_server_has_the_tables_and_columns_of_a_file(database: PostgresDatabase) -> None:
    found = {tuple(row) for row in await database.rows(_COLUMNS, ()) if row[0] not in _OWN_TABLES}
    with closing(sqlite3.connect(":memory:")) as model:
        create_tables(model, SCHEMA_VERSION)
        wanted = model.execute(
            "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c "
            "WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite@_%' ESCAPE '@'"
        ).fetchall()

    assert found - {("leases", "pid_namespace"), ("leases", "expires_at")} == set(wanted)


async def test_an_older_schema_is_migrated_and_a_newer_one_refused_untouched(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    path = ServerPath.from_url(postgres.create_database(), tmp_path)
    newer = [
        *load_migrations(),
        Migration("later", "ALTER TABLE threads ADD COLUMN later TEXT NOT NULL DEFAULT ''"),
    ]
    await (await PostgresDatabase.open(path, load_migrations()[:16])).close()
    with pytest.raises(StorageError, match="written by an older version"):
        PostgresReadConnection.open(path)
    async with await PostgresDatabase.open(path) as database:
        await add(database, "t")
    async with await PostgresDatabase.open(path, newer) as database:
        assert await database.rows("SELECT later FROM threads", ()) == [("",)]

    with pytest.raises(NewerSchema, match=rf"{SCHEMA_VERSION + 1}, this program knows up to {SCHEMA_VERSION}"):
        await PostgresDatabase.open(path)
    with pytest.raises(NewerSchema, match="update the program"):
        PostgresReadConnection.open(path)


async def test_two_processes_may_open_a_new_database_at_once(postgres: PostgresServer, tmp_path: Path) -> None:
    path = ServerPath.from_url(postgres.create_database(), tmp_path)
    for database in await asyncio.gather(*(PostgresDatabase.open(path) for _ in range(4))):
        await database.close()


async def test_a_schema_of_that_name_with_other_tables_is_left_alone(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    path = ServerPath.from_url(postgres.create_database(), tmp_path)
    with pytest.raises(NothingYet, match="no threads in the database"):
        PostgresReadConnection.open(path)
    async with await PostgresDatabase.open(path) as database:
        await database.run(lambda connection: connection.execute("DROP TABLE schema_version"))

    with pytest.raises(DamagedDatabase, match="holds tables of another program"):
        await PostgresDatabase.open(path)


async def test_text_with_a_nul_is_stored_and_found_again(database: PostgresDatabase) -> None:
    await add(database, "t", "a\0b\uf8f0c")

    assert await titles(database) == ["a\0b\uf8f0c"]
    found = await database.rows("SELECT thread_id FROM threads WHERE title = ?", ("a\0b\uf8f0c",))
    assert found == [("t",)]


async def test_rows_are_numbered_and_a_row_that_is_there_is_replaced(database: PostgresDatabase) -> None:
    clock = SystemClock()
    states = SqliteFileStates(database, clock)
    await states.set("t", "/f", "one")
    await states.set("t", "/f", "two")

    assert await states.get("t", "/f") == "two"
    statement = "INSERT INTO decisions (thread_id, call_id, attempt, question, args_digest, kind, by, at) "
    values = ("t", "c", 1, "approval", "d", "approve", "me", clock.now())

    def insert(connection: Connection) -> int | None:
        return connection.execute(f"{statement} VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values).lastrowid

    assert await database.write(insert) == 1
    with pytest.raises(InternalError, match="broke a rule of the schema"):
        await database.write(insert)
    assert await SqliteShells(database, clock).of_thread("t") == []


async def test_a_transaction_is_rolled_back_when_its_work_fails(database: PostgresDatabase) -> None:
    await add(database, "t", "old")

    def fail(connection: Connection) -> None:
        connection.execute("UPDATE threads SET title = 'new'")
        raise ValueError("as ordered")

    for thread_id in ("", "t"):
        with pytest.raises(ValueError, match="as ordered"):
            await database.write(fail, thread_id=thread_id)
    assert await titles(database) == ["old"]


async def test_transactions_wait_for_others_of_their_thread_and_for_those_of_all(
    place: ServerPath, database: PostgresDatabase
) -> None:
    is_in, may_go = threading.Event(), threading.Event()

    def hold(_: Connection) -> None:
        is_in.set()
        may_go.wait(20)

    async with await PostgresDatabase.open(place) as other:
        held = asyncio.create_task(other.write(hold, thread_id="a"))
        await asyncio.to_thread(is_in.wait, 20)
        await database.write(lambda _: None, thread_id="b")
        waiting = asyncio.create_task(database.write(lambda _: None, thread_id="a"))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        may_go.set()
        await asyncio.gather(held, waiting)
        is_in.clear()
        may_go.clear()
        held = asyncio.create_task(other.write(hold))
        await asyncio.to_thread(is_in.wait, 20)
        waiting = asyncio.create_task(database.write(lambda _: None, thread_id="b"))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        may_go.set()
        await asyncio.gather(held, waiting)


async def _end_sessions(postgres: PostgresServer, place: ServerPath) -> None:
    name = place.url.partition("?")[0].rpartition("/")[2]
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "
    await asyncio.to_thread(postgres.execute, f"{ended} '{name}'")


async def test_a_lost_session_is_opened_again_and_what_only_read_is_done_again(
    postgres: PostgresServer, place: ServerPath, database: PostgresDatabase
) -> None:
    await add(database, "t")
    blobs = open_blobs(place)
    reference = await asyncio.to_thread(blobs.put, b"content")
    await _end_sessions(postgres, place)

    assert await titles(database) == ["t"]
    await _end_sessions(postgres, place)
    await database.write(lambda connection: connection.execute("UPDATE threads SET title = 'new'"))
    assert await titles(database) == ["new"]
    assert await asyncio.to_thread(blobs.get, reference) == b"content"


async def test_a_process_whose_session_ends_keeps_its_thread(
    postgres: PostgresServer, place: ServerPath, database: PostgresDatabase
) -> None:
    await add(database, "t")
    lock = thread_lock(database, SystemClock())
    await lock.acquire("t", "one")
    await _end_sessions(postgres, place)

    await database.write(lambda connection: connection.execute("UPDATE threads SET title = 'new'"))
    async with await PostgresDatabase.open(place) as other:
        with pytest.raises(ThreadHeld, match="open in another process"):
            await thread_lock(other, SystemClock()).acquire("t", "two")
        assert await titles(other) == ["new"]
    await lock.release()


async def _hears(notices: WorkNotices) -> bool:
    readable, _, _ = await asyncio.to_thread(select.select, [notices.fileno()], [], [], 0.5)
    return bool(readable)


async def test_workers_are_notified_of_added_and_cancelled_tasks_and_of_answers_and_of_nothing_else(
    place: ServerPath, database: PostgresDatabase
) -> None:
    tasks, notices = TaskTable(database, SystemClock()), listen_for_work(place)
    heard: dict[str, bool] = {}

    async def listen(event: str) -> None:
        heard[event] = await _hears(notices)
        assert notices.take()

    task = await tasks.add(NewTask("go", "/w", "default"), "me")
    await listen("added")
    await add(database, "t")
    await listen("a thread is new")
    await tasks.begin(task.task_id, "one")
    await listen("begun")
    await database.write(lambda connection: connection.execute(_ANSWER))
    await listen("answered")
    await tasks.cancel(task.task_id)
    await listen("cancelled")
    notices.close()

    assert heard == {"added": True, "a thread is new": False, "begun": False, "answered": True, "cancelled": True}


@pytest.mark.parametrize("rows", [2, 40])
async def test_a_process_that_pauses_within_a_transaction_does_not_keep_others_waiting_for_long(
    place: ServerPath, database: PostgresDatabase, rows: int
) -> None:
    def pause(connection: Connection) -> None:
        statement = f"INSERT INTO threads ({_THREAD}) VALUES (?, '', '', '', '', '')"  # noqa: S608 - names only
        connection.executemany(statement, [(f"t{number}",) for number in range(rows)])
        time.sleep(6)

    with pytest.raises(StorageError, match="paused within a transaction"):
        await database.write(pause)

    assert await titles(database) == []


async def test_the_use_of_a_server_counts_connections_and_leases(
    place: ServerPath, database: PostgresDatabase
) -> None:
    for thread_id in ("one", "two"):
        await add(database, thread_id)
        await thread_lock(database, SystemClock()).acquire(thread_id, thread_id)
    await database.write(lambda connection: connection.execute(_LOST))

    use = server_use(place)

    assert (use.held, use.lost, use.connections >= 3, use.advice) == (1, 1, True, "")
    assert use.summary.endswith("connections in use, 1 thread held and 1 left by processes that are gone")
    assert "max_connections" in replace(use, connections=99).advice
    assert "or later" in replace(use, version="14.9").advice


async def test_a_worker_notices_that_it_no_longer_gets_notices(
    postgres: PostgresServer, place: ServerPath, database: object
) -> None:
    notices = listen_for_work(place)
    await _end_sessions(postgres, place)

    assert await _hears(notices)
    await asyncio.to_thread(until, lambda: not notices.take(), 10)
    notices.close()


async def test_a_crash_of_the_server_loses_nothing_that_a_process_goes_on_from(
    postgres: PostgresServer, place: ServerPath, database: PostgresDatabase
) -> None:
    await add(database, "t")
    # By default this process would have a fifth of a second to write what a commit did not wait for.
    postgres.execute("ALTER SYSTEM SET wal_writer_delay = 10000")
    postgres.restart("fast")
    await database.write(lambda connection: connection.execute("UPDATE threads SET title = 'new'"), synced=False)
    postgres.restart("immediate")

    assert await titles(database) == ["new"]
    postgres.execute("ALTER SYSTEM RESET ALL")


async def test_blobs_are_in_the_database_and_what_nobody_names_is_dropped(
    place: ServerPath, database: object
) -> None:
    blobs = open_blobs(place)
    reference = blobs.put(b"x" * 100_000)

    assert open_blobs(place).get(reference) == b"x" * 100_000
    assert blobs.drop_unreferenced(lambda: {reference.rpartition(":")[2]}, 4e9) == []
    assert len(blobs.drop_unreferenced(set, 4e9)) == 1
    with pytest.raises(StorageError, match="is missing in the database"):
        blobs.get(reference)


async def test_a_reader_sees_one_moment_within_a_snapshot_and_notices_changes(
    place: ServerPath, database: PostgresDatabase
) -> None:
    await add(database, "a")
    before = server_stamp(place)
    with closing(open_read_store(place)) as store:
        with store.snapshot():
            assert set(store.workspaces()) == {"a"}
            await add(database, "b")
            assert set(store.workspaces()) == {"a"}
        assert set(store.workspaces()) == {"a", "b"}
    assert before is not None
    assert server_stamp(place) != before


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (("PASSWORD", "wrong"), "password authentication failed.*check the user and the password"),
        (("postgres:", "nobody:"), "check the user and the password"),
        (("/NAME", "/missing"), 'database "missing" does not exist.*createdb'),
        (("PORT", "1"), "check that the server runs and can be reached from here"),
    ],
    ids=["password", "user", "database", "port"],
)
async def test_a_session_that_cannot_be_opened_is_explained_without_the_password(
    postgres: PostgresServer, tmp_path: Path, change: tuple[str, str], match: str
) -> None:
    parts = "postgresql://postgres:PASSWORD@127.0.0.1:PORT/NAME".replace(*change)
    secret = PASSWORD.replace(" ", "%20")
    url = parts.replace("PASSWORD", secret).replace("PORT", str(postgres.port)).replace("NAME", "postgres")

    with pytest.raises(StorageError, match=match) as caught:
        await open_database(ServerPath.from_url(url, tmp_path))
    assert caught.value.exit_code == 1
    assert PASSWORD not in str(caught.value)
    assert secret not in str(caught.value)


@pytest.mark.parametrize(
    ("statement", "match"),
    [
        ("SET default_transaction_read_only = on; INSERT INTO workers VALUES ('w')", "Name the primary server"),
        ("SET statement_timeout = 10; SELECT pg_sleep(5)", "a statement took longer than 30 seconds"),
        ("DO $$ BEGIN RAISE SQLSTATE '53100'; END $$", "its disk is full. Free some space there"),
        ("DO $$ BEGIN RAISE SQLSTATE '53300'; END $$", "raise max_connections there"),
        ("DO $$ BEGIN RAISE SQLSTATE '42501'; END $$", "this user may not do that"),
        ("DO $$ BEGIN RAISE SQLSTATE '58030'; END $$", "see the log of the server"),
    ],
)
async def test_an_error_of_the_server_says_what_to_do(
    database: PostgresDatabase, statement: str, match: str
) -> None:
    def run(_: Connection) -> None:
        session = database._session().session
        for part in statement.split("; ", 1) if statement.startswith("SET") else [statement]:
            session.execute(part.encode())

    with pytest.raises(StorageError, match=match):
        await database.run(run)


@pytest.mark.slow
async def test_a_standby_is_read_and_not_written(postgres_programs: Path, tmp_path: Path) -> None:
    with running_server(postgres_programs) as primary:
        url = primary.create_database()
        async with await open_database(ServerPath.from_url(url, tmp_path)) as opened:
            await opened.write(
                lambda connection: connection.execute("INSERT INTO file_states VALUES ('t', 'a', '', '')")
            )
        with running_standby(primary) as standby:
            place = ServerPath.from_url(standby.url(url.partition("?")[0].rpartition("/")[2]), tmp_path)
            with closing(PostgresReadConnection.open(place)) as connection:
                rows = connection.rows("SELECT thread_id FROM file_states")
            with pytest.raises(StorageError, match="only takes reads, as a standby does"):
                await open_database(place)

    assert rows == [("t",)]
