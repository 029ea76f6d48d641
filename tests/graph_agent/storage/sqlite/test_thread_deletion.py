from typing import Any

from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.thread_deletion import delete_threads
from tests.graph_agent.storage.sqlite.looking import rows

_TABLES = """
SELECT m.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND c.name = 'thread_id'
"""
_GRANT = """
INSERT INTO grants (scope, rules, mode, thread_id, workspace, call_id, by, at)
VALUES (?, '[]', '', 'gone', '', '', '', '')
"""


async def _of(database: Database, table: str) -> list[tuple[Any, ...]]:
    return await rows(database, f"SELECT thread_id FROM {table}")  # noqa: S608 - names from the schema


async def fill(database: Database, table: str, thread_id: str) -> None:
    """Put one row of a thread into a table, whatever its columns are."""
    columns = [row for row in await rows(database, f"PRAGMA table_info({table})") if row[1] != "id"]
    values = [thread_id if row[1] == "thread_id" else 1 if "INT" in row[2] else "thread" for row in columns]
    names, places = ", ".join(row[1] for row in columns), ", ".join("?" for _ in columns)
    statement = f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({places})"  # noqa: S608 - names from the schema
    await database.write(lambda connection: connection.execute(statement, values))


async def test_no_table_holds_a_row_of_a_deleted_thread_and_others_keep_theirs(database: Database) -> None:
    tables = [name for (name,) in await rows(database, _TABLES)]
    for thread_id in ("gone", "kept"):
        for table in tables:
            await fill(database, table, thread_id)

    await database.write(lambda connection: delete_threads(connection, ["gone"]))

    left = {table: [row[0] for row in await _of(database, table)] for table in tables}
    assert left == {table: ["kept"] for table in tables}
    assert len(tables) >= 16


async def test_what_was_allowed_beyond_the_thread_stays_allowed(database: Database) -> None:
    scopes = [("thread",), ("project",), ("user",)]
    await database.write(lambda connection: connection.executemany(_GRANT, scopes))

    await database.write(lambda connection: delete_threads(connection, ["gone"]))

    assert await rows(database, "SELECT scope FROM grants") == [("project",), ("user",)]
