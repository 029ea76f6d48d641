import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from graph_agent.config.paths import ServerPath
from graph_agent.errors import StorageError, ThreadHeld, UsageError
from graph_agent.ports import Grant, Intent, Outcome, SystemClock
from graph_agent.storage import Connection, open_blobs, open_database, open_read_store, thread_lock
from graph_agent.storage.postgres.copying import copy_database
from graph_agent.storage.postgres.database import PostgresDatabase
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.decisions import SqliteGrants, insert_grant
from graph_agent.storage.sqlite.journal import SqliteJournal
from graph_agent.storage.sqlite.threads import SqliteInbox, ThreadTable
from tests.fakes.postgres_server import PostgresServer
from tests.graph_agent.storage.sqlite.small_graph import compile_graph, config_of, play_turn


async def fill(path: Path) -> str:
    """Two threads with something in most tables; returns the reference of a content."""
    clock = SystemClock()
    async with await open_database(path) as database:
        threads, blobs = ThreadTable(database, clock), open_blobs(path)
        for thread_id in ("a", "b"):
            await threads.create(thread_id, "/w", "m", "default")
            await play_turn(compile_graph(CheckpointSaver(database)), thread_id, "one")
        await threads.set_title("a", "a\0title\uf8f0")
        await SqliteInbox(database, clock).queue("b", "later", "me")
        journal, reference = SqliteJournal(database, blobs, clock), blobs.put(b"before")
        intent = Intent("/w/f", None, "0" * 64, before_blob=reference)
        await journal.claim("a", "c", 1, "me", intent)
        await journal.finish("a", "c", 1, "me", Outcome(status="success", output="long " * 50_000))
        grant = Grant("user", ("bash(ls)",), "default", "gone", "/w", "c", "me", clock.now())
        await database.write(lambda connection: insert_grant(connection, grant))
    return reference


async def state_of(path: Path, thread_id: str) -> Any:
    async with await open_database(path) as database:
        return await CheckpointSaver(database).aget_tuple(config_of(thread_id))


async def test_a_file_is_copied_to_a_server_and_back_with_every_thread_the_same(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    file, back = tmp_path / "one" / "a.db", tmp_path / "two" / "b.db"
    server = ServerPath.from_url(postgres.create_database(), tmp_path)
    reference = await fill(file)

    there = await copy_database(file, server)
    again = await copy_database(server, back)

    assert there == again
    assert set(there.digests) == {"a", "b", "gone"}
    assert (there.blobs, there.missing) == (2, 0)
    assert await state_of(file, "a") == await state_of(server, "a") == await state_of(back, "a")
    assert open_blobs(back).get(reference) == b"before"
    with closing(open_read_store(server)) as store:
        assert {thread.columns["title"] for thread in store.threads()} >= {"a\0title\uf8f0"}
    async with await open_database(server) as database:
        await play_turn(compile_graph(CheckpointSaver(database)), "b", "two")
        assert await SqliteInbox(database, SystemClock()).queue("b", "third", "me") == 2
        grant = (await SqliteGrants(database).in_force("a", "/w"))[0]
        await database.write(lambda connection: insert_grant(connection, grant))
        assert [one.id for one in await SqliteGrants(database).in_force("a", "/w")] == [1, 2]


async def test_a_copy_is_refused_where_it_would_mix_or_lose_something(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    file, server = tmp_path / "a.db", ServerPath.from_url(postgres.create_database(), tmp_path)
    await fill(file)

    with pytest.raises(UsageError, match="Both databases are files"):
        await copy_database(file, tmp_path / "b.db")
    with pytest.raises(UsageError, match="Name another one"):
        await copy_database(server, server)
    async with await open_database(file) as database:
        lock = thread_lock(database, SystemClock())
        await lock.acquire("a", "me")
        with pytest.raises(ThreadHeld, match=r"Thread 'a' is open .* would be missing in the copy"):
            await copy_database(file, server)
        await lock.release()
    await copy_database(file, server)
    with pytest.raises(UsageError, match="is not empty \\(threads: 2\\)"):
        await copy_database(file, server)


async def test_of_a_thread_that_would_be_another_one_there_nothing_is_copied(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    file, server = tmp_path / "a.db", ServerPath.from_url(postgres.create_database(), tmp_path)
    await fill(file)

    def change(connection: Connection) -> None:
        connection.execute(
            """CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN NEW.title = 'other'; RETURN NEW; END $$"""
        )
        connection.execute("CREATE TRIGGER change BEFORE INSERT ON threads FOR EACH ROW EXECUTE FUNCTION change()")

    async with await PostgresDatabase.open(server) as database:
        await database.run(change)
        with pytest.raises(StorageError, match=re.escape("differs in the copy. Nothing was copied")):
            await copy_database(file, server)
        assert await database.rows("SELECT count(*) FROM checkpoints", ()) == [(0,)]
