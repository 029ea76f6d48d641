import sqlite3
from functools import partial
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage

from graph_agent.storage import Connection
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.database_file import APPLICATION_ID
from graph_agent.storage.sqlite.migrations import load_migrations
from graph_agent.storage.sqlite.projections import Place, fold_messages
from graph_agent.storage.sqlite.search_index import update_search_index
from tests.graph_agent.storage.sqlite.looking import execute, rows

_PLACE = Place("t", "c", "2026-11-28T10:00:00.000Z")


async def say(database: Database, *messages: HumanMessage) -> None:
    await database.write(lambda connection: fold_messages(connection, _PLACE, messages))


async def found(database: Database, word: str) -> list[int]:
    return [
        row[0] for row in await rows(database, "SELECT rowid FROM search_index WHERE search_index MATCH ?", word)
    ]


@pytest.fixture
async def thread(database: Database) -> Database:
    statement = "INSERT INTO threads (thread_id, created_at, updated_at) VALUES ('t', '', '')"
    await execute(database, statement)
    return database


async def test_messages_are_in_the_index_once_their_thread_is_idle(thread: Database) -> None:
    await say(thread, HumanMessage("hello brave world", id="m"))
    before = await found(thread, "brave")

    await CheckpointSaver(thread).prune_if_grown("t", 50)

    assert (before, await found(thread, "brave"), await rows(thread, "SELECT * FROM search_entries")) == (
        [],
        [1],
        [(1, "t", 1)],
    )


async def test_a_message_that_is_replaced_is_found_by_its_new_words_only(thread: Database) -> None:
    await say(thread, HumanMessage("hello old", id="m"))
    await thread.write(update_search_index)
    await say(thread, HumanMessage("hello new", id="m"))
    pending = await rows(thread, "SELECT count(*) FROM search_removals")

    await thread.write(update_search_index)

    assert (pending, await found(thread, "old"), await found(thread, "new")) == ([(1,)], [], [1])
    assert await rows(thread, "SELECT count(*) FROM search_removals") == [(0,)]


async def test_deleting_rows_leaves_the_index_sound(thread: Database) -> None:
    await say(thread, HumanMessage("one", id="1"), HumanMessage("two", id="2"))
    await thread.write(update_search_index)
    await execute(thread, "DELETE FROM transcript WHERE seq = 2")
    await say(thread, HumanMessage("three", id="3"))

    await thread.write(update_search_index)

    assert [await found(thread, word) for word in ("one", "two", "three")] == [[1], [], [2]]
    await execute(thread, "INSERT INTO search_index (search_index) VALUES ('integrity-check')")


async def test_an_inconsistent_index_is_built_again(thread: Database) -> None:
    await say(thread, HumanMessage("one", id="1"), HumanMessage("two", id="2"))
    await thread.write(update_search_index)
    await execute(thread, "INSERT INTO search_index (search_index) VALUES ('delete-all')")
    await execute(thread, "DELETE FROM transcript WHERE seq = 1")

    await thread.write(update_search_index)

    assert [await found(thread, word) for word in ("one", "two")] == [[], [1]]


async def test_an_older_database_is_indexed_when_it_is_migrated(database_path: Path) -> None:
    database_path.parent.mkdir(mode=0o700)
    old = sqlite3.connect(database_path)
    for migration in load_migrations()[:4]:
        old.executescript(migration.sql)
    old.executescript(
        f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version=4; INSERT INTO transcript VALUES"
        """('t', 1, 0, 'm', 'user', '{"content":"said long ago"}', 'c', '')"""
    )
    old.close()

    async with await Database.open(database_path) as database:
        assert await found(database, "ago") == [1]


def test_a_build_without_an_index_is_left_alone() -> None:
    class Without(sqlite3.Connection):
        def execute(self, sql: str, parameters: object = (), /) -> sqlite3.Cursor:
            return super().execute(sql.replace("'fts5'", "'none'"))

    connection = sqlite3.connect(":memory:", factory=Without)

    update_search_index(connection)

    assert connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)
    connection.close()


def _work(connection: Connection) -> int:
    """Instructions of SQLite's machine for one more message and its words."""
    assert isinstance(connection, sqlite3.Connection)
    counted: list[int] = []

    def count() -> int:
        counted.append(1)
        return 0

    connection.set_progress_handler(count, 1)
    fold_messages(connection, _PLACE, [HumanMessage("one more")])
    update_search_index(connection, "t")
    connection.set_progress_handler(None, 0)
    return len(counted)


async def test_one_more_message_is_as_much_work_after_a_thousand_as_after_fifty(thread: Database) -> None:
    counts = []
    for start, end in ((0, 50), (50, 1000)):
        await say(thread, *(HumanMessage("some words", id=f"m{number}") for number in range(start, end)))
        await thread.write(partial(update_search_index, thread_id="t"))
        counts.append(await thread.write(_work))

    assert counts[1] <= 1.1 * counts[0]
