import sqlite3
from collections.abc import Iterator

import pytest

from graph_agent.storage.sqlite.repair import ReadableRows


@pytest.fixture
def source() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (a TEXT, b TEXT)")
    connection.execute("CREATE TABLE w (a TEXT PRIMARY KEY) WITHOUT ROWID")
    connection.executemany("INSERT INTO t (rowid, a) VALUES (?, ?)", [(3, "x"), (900, "y"), (2**40, "z")])
    connection.executemany("INSERT INTO w VALUES (?)", [("x",), ("y",)])
    yield connection
    connection.close()


def test_every_row_of_a_sound_table_comes_with_its_number_and_none_is_lost(source: sqlite3.Connection) -> None:
    found = ReadableRows(source, "t", ["a"], ())

    assert list(found) == [(3, "x"), (900, "y"), (2**40, "z")]
    assert (found.is_whole, found.lost) == (True, 0)


def test_a_table_without_numbers_gives_each_row_once(source: sqlite3.Connection) -> None:
    found = ReadableRows(source, "w", ["a"], ["a"])

    assert list(found) == [("x",), ("y",)]


def test_a_table_that_is_not_there_is_empty_and_nothing_tells_what_is_lost(source: sqlite3.Connection) -> None:
    found = ReadableRows(source, "gone", ["a"], ())

    assert (list(found), found.is_whole, found.lost) == ([], False, None)
