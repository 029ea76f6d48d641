from typing import Any

import pytest

from graph_agent.errors import UnknownId
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.journal import SqliteJournal
from graph_agent.storage.sqlite.projections import delete_threads
from graph_agent.storage.sqlite.threads import SqliteInbox, ThreadRow, ThreadTable
from tests.fakes.stepping_clock import SteppingClock
from tests.graph_agent.storage.sqlite.looking import columns_of, execute, rows, tables_of
from tests.graph_agent.storage.sqlite.small_graph import Graph, play_turn

_FIRST = "2026-01-01T00:00:00.000Z"


_NEW = ThreadRow("t", "", "/w", "gpt-5", "default", _FIRST, _FIRST, None, 0, "", None)


@pytest.fixture
def threads(database: Database, clock: SteppingClock) -> ThreadTable:
    return ThreadTable(database, clock)


async def _create(threads: ThreadTable, *thread_ids: str) -> None:
    for thread_id in thread_ids:
        await threads.create(thread_id, "/w", "gpt-5", "default")


async def test_a_thread_is_listed_before_its_first_checkpoint_and_created_once(threads: ThreadTable) -> None:
    assert await threads.create("t", "/w", "gpt-5", "default") == await threads.get("t") == _NEW
    assert await threads.create("t", "/elsewhere", "other", "plan") == await threads.get("t") == _NEW


async def test_what_the_user_sets_stays_when_checkpoints_come(threads: ThreadTable, graph: Graph) -> None:
    await _create(threads, "t")
    await threads.set_title("t", "My title")
    await threads.set_mode("t", "plan")
    await threads.set_workspace("t", "/elsewhere")
    await threads.set_roots("t", ("/lib", "/srv/ü"))

    await play_turn(graph, "t", "hello")

    row = await threads.get("t")
    assert row is not None
    assert (row.title, row.mode, row.workspace, row.turns) == ("My title", "plan", "/elsewhere", 1)
    assert (row.outcome, _NEW.roots, row.roots) == ("done", (), ("/lib", "/srv/ü"))


async def test_the_newest_thread_of_a_workspace_is_the_one_used_last(threads: ThreadTable, graph: Graph) -> None:
    await _create(threads, "old", "new")
    await threads.create("other", "/elsewhere", "gpt-5", "default")
    before = await threads.newest("/w")

    await play_turn(graph, "old", "hello")

    assert [row.thread_id for row in (before, await threads.newest("/w")) if row] == ["new", "old"]
    assert await threads.newest("/nowhere") is None


async def test_an_empty_thread_is_the_newest_only_with_a_queued_message(
    threads: ThreadTable, database: Database, graph: Graph, inbox: SqliteInbox
) -> None:
    await _create(threads, "worked", "left")
    await play_turn(graph, "worked", "hello")
    await execute(database, "UPDATE threads SET updated_at = '9999' WHERE thread_id = 'left'")
    before = await threads.newest("/w")
    await inbox.queue("left", "later", "me")

    assert [row.thread_id for row in (before, await threads.newest("/w")) if row] == ["worked", "left"]


async def test_threads_of_sub_agents_are_not_the_newest(threads: ThreadTable, database: Database) -> None:
    await _create(threads, "t", "child")
    await execute(database, "UPDATE threads SET parent_thread = 't', parent_call = 'c' WHERE thread_id = 'child'")

    assert await threads.newest("/w") == _NEW


@pytest.mark.parametrize("method", ["set_title", "set_mode", "set_workspace"])
async def test_setting_something_of_an_unknown_thread_is_refused(threads: ThreadTable, method: str) -> None:
    with pytest.raises(UnknownId, match="No thread has the id 't'"):
        await getattr(threads, method)("t", "x")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("SELECT 1", [True, False]),
        ("UPDATE journal SET owner = 'a later run' WHERE thread_id = 'fork'", [False, False]),
        ("DELETE FROM threads WHERE thread_id = 'source'", [True, True]),
        ("INSERT INTO imported_checkpoints (thread_id, checkpoint_id) VALUES ('fork', 'x')", [True, True]),
    ],
)
async def test_a_call_of_a_fork_may_have_started_elsewhere_if_its_newest_attempt_was_copied(
    threads: ThreadTable, database: Database, change: str, expected: list[bool], journal: SqliteJournal
) -> None:
    for thread_id in ("source", "fork"):
        await threads.create(thread_id, "/w", "m", "default")
        await journal.claim(thread_id, "came along", 1, "run", None)
    await journal.claim("fork", "its own", 1, "run", None)
    await execute(database, "UPDATE threads SET parent_thread = 'source' WHERE rowid = 2")
    await execute(database, change)

    found = [await threads.may_have_started_elsewhere("fork", call_id) for call_id in ("came along", "its own")]
    assert found == expected


_SENT = """
INSERT INTO transcript (thread_id, seq, branch, message_id, role, body, checkpoint_id, at)
VALUES (?, 1, 0, ?, 'user', '{}', 'c1', '')
"""


async def test_a_message_in_the_transcript_is_no_longer_queued(database: Database, inbox: SqliteInbox) -> None:
    await inbox.queue("t", "one", "chat")
    [(number, _)] = await inbox.waiting("t")

    await execute(database, _SENT, "t", f"inbox-{number}")

    assert await inbox.waiting("t") == []


async def test_a_queued_message_moves_to_another_thread_once_with_a_free_number(
    database: Database, inbox: SqliteInbox
) -> None:
    numbers = [await inbox.queue("t", text, "chat") for text in ("one", "two")]
    await inbox.take("t", numbers[0])
    await execute(database, _SENT, "other", f"inbox-{numbers[1]}")

    there = [await inbox.move_to_thread("t", number, "other") for number in (*numbers, numbers[1])]

    assert there == [None, numbers[1] + 1, None]
    assert (await inbox.waiting("t"), await inbox.waiting("other")) == ([], [(numbers[1] + 1, "two")])


_GRANT = """
INSERT INTO grants (scope, rules, mode, thread_id, workspace, call_id, by, at)
VALUES (?, '[]', '', 'gone', '', '', '', '')
"""


async def _of(database: Database, table: str) -> list[tuple[Any, ...]]:
    return await rows(database, f"SELECT thread_id FROM {table}")  # noqa: S608 - names from the schema


_VALUES: dict[str, Any] = {"INTEGER": 1, "BIGINT": 1, "BLOB": b"", "BYTEA": b"", "TEXT": "thread"}


async def fill(database: Database, table: str, thread_id: str) -> None:
    """Put one row of a thread into a table, whatever its columns are."""
    kinds = (await columns_of(database, table)).items()
    columns = {name: _VALUES[kind] for name, kind in kinds if name not in ("id", "rowid") and kind in _VALUES}
    values = [thread_id if name in ("thread_id", "task_id") else value for name, value in columns.items()]
    names, places = ", ".join(columns), ", ".join("?" for _ in columns)
    statement = f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({places})"  # noqa: S608 - names from the schema
    await execute(database, statement, *values)


async def test_no_table_holds_a_row_of_a_deleted_thread_and_others_keep_theirs(database: Database) -> None:
    tables = await tables_of(database)
    for thread_id in ("gone", "kept"):
        for table in tables:
            await fill(database, table, thread_id)

    await database.write(lambda connection: delete_threads(connection, ["gone"]))

    left = {table: [row[0] for row in await _of(database, table)] for table in tables}
    assert left == {table: ["kept"] for table in tables}
    assert len(tables) >= 15


async def test_permissions_beyond_the_thread_survive_its_deletion(database: Database) -> None:
    scopes = [("thread",), ("project",), ("user",)]
    await database.write(lambda connection: connection.executemany(_GRANT, scopes))

    await database.write(lambda connection: delete_threads(connection, ["gone"]))

    assert await rows(database, "SELECT scope FROM grants") == [("project",), ("user",)]
