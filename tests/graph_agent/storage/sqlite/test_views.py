import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import ormsgpack
import pytest

from graph_agent.storage.sqlite.views import create_foreign_views

_TABLES = """
CREATE TABLE checkpoints (thread_id TEXT, checkpoint_ns TEXT DEFAULT '', checkpoint_id TEXT,
    parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id));
CREATE TABLE writes (thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, task_id TEXT, idx INTEGER,
    channel TEXT, type TEXT, value BLOB);
"""


@pytest.fixture
def file() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(_TABLES)
        yield connection


def stored(file: sqlite3.Connection, checkpoint_id: str, namespace: str = "", **checkpoint: Any) -> None:
    file.execute(
        "INSERT INTO checkpoints VALUES ('t', ?, ?, NULL, 'msgpack', ?, '{}')",
        (namespace, checkpoint_id, ormsgpack.packb(checkpoint)),
    )


def test_a_time_is_taken_from_the_id_of_a_checkpoint_and_else_from_the_checkpoint(file: sqlite3.Connection) -> None:
    stored(file, "1f1eb064-3852-614e-8002-25a6a3f25747", ts="never read")
    stored(file, "b", "child:1", ts="2026-01-01T00:00:00Z")

    assert create_foreign_views(file)

    assert file.execute("SELECT thread_id, parent_thread, created_at, updated_at FROM threads").fetchall() == [
        ("t", None, "2026-11-28T08:32:36.032Z", "2026-11-28T08:32:36.032Z"),
        ("t/child:1", "t", "", "2026-01-01T00:00:00Z"),
    ]


def test_the_head_alone_gives_next_nodes_turn_count_and_first_messages(
    file: sqlite3.Connection,
) -> None:
    messages = [
        {"type": "human", "content": "a\n b"},
        {"type": "ai", "content": "c"},
        {"role": "user", "content": "d"},
    ]
    values = {"messages": messages, "branch:to:plan": None}
    stored(file, "a", channel_values=values, channel_versions={"branch:to:plan": 2}, versions_seen={})

    assert create_foreign_views(file)

    assert file.execute("SELECT title, turns, next_nodes FROM threads").fetchall() == [("a b", 2, '["plan"]')]


@pytest.mark.parametrize(
    "head",
    [
        b"\xc1",
        ormsgpack.packb({"channel_values": {"__start__": 5}, "versions_seen": [1]}),
        ormsgpack.packb({"channel_values": {"branch:to:plan": None}, "channel_versions": 3}),
        ormsgpack.packb({"channel_values": {"__pregel_tasks": 7}}),
        ormsgpack.packb({"channel_values": "none"}),
    ],
)
def test_a_head_that_cannot_be_read_does_not_hide_the_others(file: sqlite3.Connection, head: bytes) -> None:
    file.execute("INSERT INTO checkpoints VALUES ('t', '', 'a', NULL, 'msgpack', ?, '{}')", (head,))

    assert create_foreign_views(file)

    assert file.execute("SELECT thread_id, title, turns, next_nodes FROM threads").fetchall() == [
        ("t", "", 0, "[]")
    ]


def test_a_thread_is_found_by_the_index_however_many_there_are(file: sqlite3.Connection) -> None:
    create_foreign_views(file)

    for table in ("checkpoints", "writes", "threads"):
        plan = file.execute(f"EXPLAIN QUERY PLAN SELECT * FROM {table} WHERE thread_id = 't'").fetchall()  # noqa: S608 - ours
        assert [row[3] for row in plan if row[3].startswith("SCAN") and table != "writes"] == []


@pytest.mark.parametrize("missing", ["DROP TABLE writes", "ALTER TABLE writes DROP COLUMN idx"])
def test_a_file_without_the_columns_of_the_saver_is_not_taken_for_its_database(
    file: sqlite3.Connection, missing: str
) -> None:
    file.execute(missing)

    assert not create_foreign_views(file)


def test_tables_that_are_views_are_not_looked_into(tmp_path: Path) -> None:
    file = sqlite3.connect(tmp_path / "a.db")
    file.executescript(_TABLES.replace("TABLE checkpoints", "TABLE hidden"))
    file.execute("CREATE VIEW checkpoints AS SELECT * FROM hidden")

    assert not create_foreign_views(file)
    file.close()
