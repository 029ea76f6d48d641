import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from graph_agent.errors import DamagedDatabase, NewerSchema, StorageError
from graph_agent.storage.legacy_names import TABLES
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.database_file import APPLICATION_ID, has_content, refuse_foreign_log
from graph_agent.storage.sqlite.health import check_database
from graph_agent.storage.sqlite.migrations import SCHEMA_VERSION, Migration, load_migrations
from graph_agent.storage.sqlite.schema import create_tables, table_names, tables_of_version
from graph_agent.storage.sqlite.search_index import update_search_index
from tests.graph_agent.storage.sqlite.life import start
from tests.graph_agent.storage.sqlite.looking import rows

_MORE = (*load_migrations(), Migration("note", "CREATE TABLE note (text TEXT)"))


async def _create(path: Path) -> bytes:
    async with await Database.open(path) as database:
        await database.write(
            lambda connection: connection.execute(
                "INSERT INTO inbox (thread_id, text, queued_by, queued_at) VALUES ('t', 'old', '', '')"
            )
        )
    return path.read_bytes()


async def _refusal(path: Path, **options: Any) -> StorageError:
    with pytest.raises(StorageError) as caught:
        await Database.open(path, **options)
    return caught.value


async def test_a_new_database_names_its_program_and_version(database: Database) -> None:
    stamps = [await rows(database, "PRAGMA application_id"), await rows(database, "PRAGMA user_version")]

    assert stamps == [[(APPLICATION_ID,)], [(SCHEMA_VERSION,)]]


async def test_an_older_database_is_migrated_after_a_backup(database_path: Path) -> None:
    await _create(database_path)

    async with await Database.open(database_path, _MORE) as database:
        found = (await rows(database, "SELECT text FROM inbox"), await rows(database, "SELECT * FROM note"))

    (backup,) = database_path.parent.glob("*.backup")
    copy = sqlite3.connect(backup)
    assert found == ([("old",)], [])
    assert copy.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    assert copy.execute("SELECT text FROM inbox").fetchall() == [("old",)]
    assert backup.stat().st_mode & 0o777 == 0o600
    copy.close()


async def test_a_file_of_before_is_rewritten_once_so_that_it_can_shrink(database_path: Path) -> None:
    database_path.parent.mkdir(mode=0o700)
    old = sqlite3.connect(database_path)
    old.executescript(f"PRAGMA application_id={APPLICATION_ID}; {load_migrations()[0].sql}; PRAGMA user_version=1")
    before = old.execute("PRAGMA auto_vacuum").fetchone()
    old.close()

    async with await Database.open(database_path) as database:
        after = await rows(database, "PRAGMA auto_vacuum")
        await database.write(
            lambda connection: connection.execute("INSERT INTO inbox VALUES (1, 't', 'x', 'b', 'n', NULL)")
        )

    assert (before, after) == ((0,), [(2,)])
    assert len(list(database_path.parent.glob("*.backup"))) == 1


async def test_a_migration_that_fails_is_undone_whole(database_path: Path) -> None:
    await _create(database_path)
    broken = (*load_migrations(), Migration("broken", "CREATE TABLE half (x); CREATE TABLE half (x)"))

    refusal = await _refusal(database_path, migrations=broken)

    async with await Database.open(database_path) as database:
        tables = await rows(database, "SELECT name FROM sqlite_master WHERE name = 'half'")
    assert "half" in str(refusal)
    assert tables == []


async def test_a_newer_database_is_refused_with_both_versions_and_left_as_it_was(database_path: Path) -> None:
    async with await Database.open(database_path, _MORE):
        pass
    before = database_path.read_bytes()

    refusal = await _refusal(database_path)

    assert isinstance(refusal, NewerSchema)
    assert f"has schema version {SCHEMA_VERSION + 1}, this program knows up to {SCHEMA_VERSION}" in str(refusal)
    assert database_path.read_bytes() == before


async def test_a_database_of_another_program_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE theirs (x)")
    other.close()
    before = path.read_bytes()

    refusal = await _refusal(path)

    assert isinstance(refusal, DamagedDatabase)
    assert "is a database of another program" in str(refusal)
    assert [item.name for item in tmp_path.iterdir()] == ["other.db"]
    assert path.read_bytes() == before


async def test_a_database_with_a_foreign_stamp_is_refused_without_opening_it(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    other = sqlite3.connect(path)
    other.execute("PRAGMA application_id = 42")
    other.close()

    refusal = await _refusal(path)

    assert isinstance(refusal, DamagedDatabase)
    assert [file.name for file in tmp_path.iterdir()] == ["other.db"]


@pytest.mark.parametrize("content", [b"just text, and not much", b"no database " * 1000, b"SQLite format 3\x00"])
async def test_a_file_that_is_no_database_is_refused_and_left_as_it_was(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)

    refusal = await _refusal(path)

    assert isinstance(refusal, DamagedDatabase)
    assert "is not a database, or its beginning is torn" in str(refusal)
    assert path.read_bytes() == content


async def test_a_torn_database_is_refused_and_left_as_it_was(database_path: Path) -> None:
    whole = await _create(database_path)
    torn = whole[: len(whole) // 2]
    database_path.write_bytes(torn)

    refusal = await _refusal(database_path)

    assert isinstance(refusal, DamagedDatabase)
    assert f"is damaged: it has {len(torn)} bytes where its header promises {len(whole)}" in str(refusal)
    assert database_path.read_bytes() == torn


async def test_a_database_whose_pages_are_overwritten_is_told_as_damaged(database_path: Path) -> None:
    whole = await _create(database_path)
    database_path.write_bytes(whole[:100] + b"\xff" * (len(whole) - 100))

    refusal = await _refusal(database_path)

    assert isinstance(refusal, DamagedDatabase)
    assert "damaged or not a database" in str(refusal)


async def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    path.touch()

    async with await Database.open(path) as database:
        assert await rows(database, "PRAGMA user_version") == [(SCHEMA_VERSION,)]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
async def test_a_database_that_another_user_cannot_write_is_refused_with_advice() -> None:
    # Not below tmp_path: its parents are closed to other users.
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    path = folder / "agent.db"
    before = await _create(path)
    path.chmod(0o644)

    life = start("open_as_nobody", path)
    output = life.communicate(timeout=50)[0]

    assert output.startswith("StorageError: cannot use")
    assert "check the owner and permissions" in output
    assert life.returncode == 1
    assert path.read_bytes() == before
    shutil.rmtree(folder)


def test_a_later_version_has_the_tables_of_an_earlier_one_and_more() -> None:
    outlines = [
        {TABLES.get(table, table) for table in tables_of_version(version)}
        for version in range(1, SCHEMA_VERSION + 1)
    ]

    assert all(earlier <= later for earlier, later in pairwise(outlines))
    assert outlines[-1] == tables_of_version(SCHEMA_VERSION)
    assert {"checkpoints", "journal"} <= outlines[0] < outlines[-1]


def test_the_index_of_words_is_no_table_of_anybody() -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        create_tables(database, SCHEMA_VERSION)
        update_search_index(database)

        assert table_names(database) == tables_of_version(SCHEMA_VERSION)


@pytest.fixture
async def path(database_path: Path) -> Path:
    await (await Database.open(database_path)).close()
    return database_path


def _foreign_log(path: Path) -> None:
    other = path.with_name("other.db")
    with closing(sqlite3.connect(other, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE theirs (a)")
        log = path.with_name(f"{path.name}-wal")
        log.write_bytes(other.with_name("other.db-wal").read_bytes())
        log.chmod(0o600)


async def test_the_log_of_another_database_is_never_written_into_the_file(path: Path) -> None:
    before = path.read_bytes()
    _foreign_log(path)

    with pytest.raises(DamagedDatabase, match=r"the log of another database beside it: move .*agent\.db-wal"):
        await Database.open(path)
    with pytest.raises(DamagedDatabase, match="the log of another database"):
        check_database(path)

    assert path.read_bytes() == before
    for end in ("-wal", "-shm"):
        path.with_name(f"{path.name}{end}").unlink()
    assert check_database(path) is not None


async def test_a_log_that_has_lost_its_database_is_kept_for_when_it_is_put_back(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("INSERT INTO inbox VALUES (1, 't', 'said last', 'me', 'now', NULL)")
        log = path.with_name(f"{path.name}-wal")
        kept, written = path.read_bytes(), log.read_bytes()
    path.unlink()
    log.write_bytes(written)

    with pytest.raises(DamagedDatabase, match="is gone, though its log"):
        await Database.open(path)
    with pytest.raises(DamagedDatabase, match="is gone, though its log"):
        check_database(path)
    assert (log.read_bytes(), path.exists()) == (written, False)
    path.write_bytes(kept)

    async with await Database.open(path) as opened:
        assert await opened.run(lambda one: one.execute("SELECT text FROM inbox").fetchall()) == [("said last",)]


def test_without_a_log_or_with_its_own_nothing_is_said(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("INSERT INTO inbox VALUES (1, 't', 'x', 'me', 'now', NULL)")
        refuse_foreign_log(path)
    refuse_foreign_log(path)
    assert not has_content(path.with_name("none.db"))


def test_an_empty_log_without_a_database_keeps_nobody_from_beginning(tmp_path: Path) -> None:
    (tmp_path / "a.db-wal").touch()

    assert not has_content(tmp_path / "a.db")
