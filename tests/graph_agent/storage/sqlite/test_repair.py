import asyncio
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from graph_agent.errors import DamagedDatabase, StorageError, ThreadHeld
from graph_agent.ports import SystemClock
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.repair import ReadableRows, salvage
from graph_agent.storage.sqlite.thread_lock import FlockThreadLock
from tests.graph_agent.storage.sqlite.small_graph import compile_graph, play_turn

_PAGE = 4096


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a database with two threads."""
    path = tmp_path_factory.mktemp("played") / "agent.db"

    async def play() -> None:
        async with await Database.open(path) as database:
            graph = compile_graph(CheckpointSaver(database))
            for number in range(8):
                await play_turn(graph, "t", f"{number} {'x' * 3000}")
                await play_turn(graph, "u", f"{number}")

    asyncio.run(play())
    return path.parent


@pytest.fixture
def path(played: Path, database_path: Path) -> Path:
    shutil.copytree(played, database_path.parent)
    database_path.parent.chmod(0o700)
    return database_path


def _pages_of(path: Path, name: str) -> list[int]:
    """The pages of a table or index, by walking its tree: SQLite's own table of pages is not compiled in."""
    with closing(sqlite3.connect(path)) as database:
        [root] = database.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,)).fetchone()
    data = path.read_bytes()

    def below(page: int) -> list[int]:
        start = (page - 1) * _PAGE
        kind, cells = data[start], int.from_bytes(data[start + 3 : start + 5], "big")
        if kind not in (2, 5):
            return [page]
        places = [
            int.from_bytes(data[start + 12 + 2 * n : start + 14 + 2 * n], "big") + start for n in range(cells)
        ]
        children = [int.from_bytes(data[place : place + 4], "big") for place in places]
        last = int.from_bytes(data[start + 8 : start + 12], "big")
        return [leaf for child in (*children, last) for leaf in below(child)]

    return below(int(root))


def _tear(path: Path, *pages: int) -> None:
    with path.open("r+b") as file:
        for page in pages:
            file.seek((page - 1) * _PAGE)
            file.write(os.urandom(_PAGE))


def _count(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as database:
        count: int = database.execute(f"SELECT count(*) FROM {table} NOT INDEXED").fetchone()[0]  # noqa: S608 - a name from here
    return count


async def test_with_only_an_index_damaged_nothing_is_lost(path: Path) -> None:
    before = {
        table: _count(path, table) for table in ("checkpoints", "writes", "transcript", "call_log", "threads")
    }
    _tear(path, *_pages_of(path, "sqlite_autoindex_writes_1")[:2])
    damaged = path.read_bytes()

    done = salvage(path)

    assert (done.lost, done.original.read_bytes()) == ({}, damaged)
    assert {table: _count(path, table) for table in before} == before
    async with await Database.open(path) as database:
        assert await database.run(lambda one: one.execute("PRAGMA integrity_check").fetchall()) == [("ok",)]


@pytest.mark.parametrize("place", [0, 1, -1])
async def test_a_torn_page_loses_only_its_rows_and_the_count_is_reported(path: Path, place: int) -> None:
    before = _count(path, "writes")
    _tear(path, _pages_of(path, "writes")[place])
    damaged = path.read_bytes()

    done = salvage(path)

    lost = before - _count(path, "writes")
    assert (done.lost, done.original.read_bytes()) == ({"writes": lost}, damaged)
    assert 0 < lost < before // 3
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(one.name for one in path.parent.iterdir() if one.is_file()) == [path.name, done.original.name]


async def test_a_truncated_file_keeps_its_remaining_rows_and_a_stale_draft_is_removed(path: Path) -> None:
    pages = path.stat().st_size // _PAGE
    draft = path.with_name(f"{path.name}.20261128T000000000000.draft")
    draft.write_bytes(b"half")
    os.truncate(path, (pages - 3) * _PAGE)
    before = path.read_bytes()

    done = salvage(path)

    assert (_count(path, "threads"), draft.exists(), done.original.read_bytes() == before) == (2, False, True)
    assert (done.rows > 50, bool(done.lost)) == (True, True)


async def test_a_file_of_which_nothing_can_be_read_is_left_as_it_is_and_a_backup_is_named(path: Path) -> None:
    for page in range(1, path.stat().st_size // _PAGE + 1):
        _tear(path, page)
    damaged = path.read_bytes()
    backup = path.with_name(f"{path.name}.v1-2026.backup")
    backup.touch()

    with pytest.raises(DamagedDatabase, match=r"nothing can be read of .*backup"):
        salvage(path)

    assert path.read_bytes() == damaged
    assert sorted(one.name for one in path.parent.iterdir() if one.is_file()) == [path.name, backup.name]


async def test_rows_in_the_log_are_copied_and_the_log_is_kept_with_the_original(path: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA wal_autocheckpoint=0")
        writer.execute("INSERT INTO inbox VALUES (1, 't', 'in the log', 'me', 'now', NULL, 0, NULL)")
        log = path.with_name(f"{path.name}-wal").read_bytes()
        _tear(path, _pages_of(path, "writes")[0])
        salvaged = salvage(path)

    assert salvaged.original.with_name(f"{salvaged.original.name}-wal").read_bytes() == log
    assert _count(path, "inbox") == 1


async def test_a_database_in_use_is_left_alone_and_the_process_named(
    path: Path,
) -> None:
    async with await Database.open(path) as database:
        lock = FlockThreadLock(database, SystemClock())
        await lock.acquire("t", "run")
        damaged = path.read_bytes()

        with pytest.raises(ThreadHeld, match=f"process {os.getpid()}, which holds thread 't'"):
            salvage(path)
        assert path.read_bytes() == damaged
        await lock.release()


async def test_the_old_file_stays_if_there_is_no_room_for_the_new_one(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("graph_agent.storage.sqlite.repair.create_private_file", full)
    with pytest.raises(StorageError, match=r"could not be salvaged: .*No space left"):
        salvage(path)

    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir() if one.is_file()] == [path.name]


@pytest.fixture
def source() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (a TEXT, b TEXT)")
    connection.execute("CREATE TABLE w (a TEXT PRIMARY KEY) WITHOUT ROWID")
    connection.executemany("INSERT INTO t (rowid, a) VALUES (?, ?)", [(3, "x"), (900, "y"), (2**40, "z")])
    connection.executemany("INSERT INTO w VALUES (?)", [("x",), ("y",)])
    yield connection
    connection.close()


@pytest.mark.parametrize(
    ("table", "keys", "found", "is_whole", "lost"),
    [
        ("t", (), [(3, "x"), (900, "y"), (2**40, "z")], True, 0),
        ("w", ["a"], [("x",), ("y",)], True, 0),
        ("gone", (), [], False, None),
    ],
    ids=["each with its number", "without numbers each once", "missing"],
)
def test_the_readable_rows_of_a_table_and_the_number_of_lost_ones(
    source: sqlite3.Connection, table: str, keys: list[str], found: list[Any], is_whole: bool, lost: int | None
) -> None:
    rows = ReadableRows(source, table, ["a"], keys)

    assert (list(rows), rows.is_whole, rows.lost) == (found, is_whole, lost)
