import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from graph_agent.errors import DamagedDatabase, NewerSchema, StorageError
from graph_agent.storage.legacy_names import TABLES
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.database_file import APPLICATION_ID, has_content, refuse_foreign_log
from graph_agent.storage.sqlite.health import check_database
from graph_agent.storage.sqlite.migrations import SCHEMA_VERSION, Migration, load_migrations
from graph_agent.storage.sqlite.schema import create_tables, table_names, tables_of_version
from graph_agent.storage.sqlite.search_index import update_search_index
from tests.graph_agent.storage.sqlite.looking import execute, rows
from tests.graph_agent.storage.sqlite.process import start

_MORE = (*load_migrations(), Migration("note", "CREATE TABLE note (text TEXT)"))
_QUEUE = "INSERT INTO inbox (thread_id, text, queued_by, queued_at) VALUES ('t', 'old', '', '')"


@pytest.fixture
async def path(database_path: Path) -> Path:
    """A database with a queued message."""
    async with await Database.open(database_path) as database:
        await execute(database, _QUEUE)
    return database_path


async def _refusal(path: Path, migrations: tuple[Migration, ...] | None = None) -> StorageError:
    """Why a file cannot be opened; it and its folder stay as they are."""
    before, files = path.read_bytes(), sorted(path.parent.iterdir())
    with pytest.raises(StorageError) as caught:
        await Database.open(path, migrations)
    assert (path.read_bytes(), [file for file in sorted(path.parent.iterdir()) if "-" not in file.name]) == (
        before,
        [file for file in files if "-" not in file.name],
    )
    return caught.value


async def test_a_new_database_names_its_program_and_version(database: Database) -> None:
    assert await rows(database, "PRAGMA application_id") == [(APPLICATION_ID,)]
    assert await rows(database, "PRAGMA user_version") == [(SCHEMA_VERSION,)]


async def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    (tmp_path / "agent.db").touch()

    async with await Database.open(tmp_path / "agent.db") as database:
        assert await rows(database, "PRAGMA user_version") == [(SCHEMA_VERSION,)]


async def test_an_older_database_is_migrated_after_a_backup(path: Path) -> None:
    async with await Database.open(path, _MORE) as database:
        found = (await rows(database, "SELECT text FROM inbox"), await rows(database, "SELECT * FROM note"))

    (backup,) = path.parent.glob("*.backup")
    assert (found, backup.stat().st_mode & 0o777) == (([("old",)], []), 0o600)
    with closing(sqlite3.connect(backup)) as copy:
        assert copy.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
        assert copy.execute("SELECT text FROM inbox").fetchall() == [("old",)]


async def test_an_old_file_is_rewritten_once_so_that_it_can_shrink(database_path: Path) -> None:
    database_path.parent.mkdir(mode=0o700)
    with closing(sqlite3.connect(database_path)) as old:
        first = load_migrations()[0].sql
        old.executescript(f"PRAGMA application_id={APPLICATION_ID}; {first}; PRAGMA user_version=1")
        before = old.execute("PRAGMA auto_vacuum").fetchone()

    async with await Database.open(database_path) as database:
        after = await rows(database, "PRAGMA auto_vacuum")
        await execute(database, _QUEUE)

    assert (before, after) == ((0,), [(2,)])
    assert len(list(database_path.parent.glob("*.backup"))) == 1


async def test_a_migration_that_fails_is_rolled_back(path: Path) -> None:
    broken = (*load_migrations(), Migration("broken", "CREATE TABLE half (x); CREATE TABLE half (x)"))

    with pytest.raises(StorageError, match="half"):
        await Database.open(path, broken)

    async with await Database.open(path) as database:
        assert await rows(database, "SELECT name FROM sqlite_master WHERE name = 'half'") == []


async def test_a_newer_database_is_refused_with_both_versions(database_path: Path) -> None:
    await (await Database.open(database_path, _MORE)).close()

    refusal = await _refusal(database_path)

    assert isinstance(refusal, NewerSchema)
    assert f"has schema version {SCHEMA_VERSION + 1}, this program knows up to {SCHEMA_VERSION}" in str(refusal)


@pytest.mark.parametrize("statement", ["CREATE TABLE theirs (x)", "PRAGMA application_id = 42"])
async def test_a_database_of_another_program_is_refused(tmp_path: Path, statement: str) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute(statement)

    refusal = await _refusal(tmp_path / "other.db")

    assert isinstance(refusal, DamagedDatabase)
    assert "is a database of another program" in str(refusal)
    assert [item.name for item in tmp_path.iterdir()] == ["other.db"]


@pytest.mark.parametrize("content", [b"just text, and not much", b"no database " * 1000, b"SQLite format 3\x00"])
async def test_a_file_that_is_no_database_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "notes.txt").write_bytes(content)

    refusal = await _refusal(tmp_path / "notes.txt")

    assert isinstance(refusal, DamagedDatabase)
    assert "is not a database, or its header is damaged" in str(refusal)


async def test_a_torn_database_is_refused(path: Path) -> None:
    whole = path.read_bytes()
    half = len(whole) // 2

    path.write_bytes(whole[:half])
    torn = await _refusal(path)
    path.write_bytes(whole[:100] + b"\xff" * (len(whole) - 100))
    overwritten = await _refusal(path)

    assert isinstance(torn, DamagedDatabase)
    assert f"is damaged: it has {half} bytes where its header promises {len(whole)}" in str(torn)
    assert isinstance(overwritten, DamagedDatabase)
    assert "damaged or not a database" in str(overwritten)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
async def test_a_database_that_another_user_cannot_write_is_refused_with_advice() -> None:
    # Not below tmp_path: its parents are closed to other users.
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    path = folder / "agent.db"
    await (await Database.open(path)).close()
    before = path.read_bytes()
    path.chmod(0o644)

    process = start("open_as_nobody", path)
    output = process.communicate(timeout=50)[0]

    assert output.startswith("StorageError: cannot use")
    assert "check the owner and permissions" in output
    assert (process.returncode, path.read_bytes()) == (1, before)
    shutil.rmtree(folder)


def test_no_version_loses_a_table_of_the_one_before() -> None:
    outlines = [
        {TABLES.get(table, table) for table in tables_of_version(version)}
        for version in range(1, SCHEMA_VERSION + 1)
    ]

    assert all(earlier <= later for earlier, later in pairwise(outlines))
    assert outlines[-1] == tables_of_version(SCHEMA_VERSION)
    assert {"checkpoints", "journal"} <= outlines[0] < outlines[-1]


def test_the_search_index_is_not_reported_as_a_foreign_table() -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        create_tables(database, SCHEMA_VERSION)
        update_search_index(database)

        assert table_names(database) == tables_of_version(SCHEMA_VERSION)


async def test_the_log_of_another_database_is_never_written_into_the_file(path: Path) -> None:
    before = path.read_bytes()
    other, log = path.with_name("other.db"), path.with_name(f"{path.name}-wal")
    with closing(sqlite3.connect(other, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE theirs (a)")
        log.write_bytes(other.with_name("other.db-wal").read_bytes())
        log.chmod(0o600)

    with pytest.raises(DamagedDatabase, match=r"the log of another database beside it: move .*agent\.db-wal"):
        await Database.open(path)
    with pytest.raises(DamagedDatabase, match="the log of another database"):
        check_database(path)

    assert path.read_bytes() == before
    for end in ("-wal", "-shm"):
        path.with_name(f"{path.name}{end}").unlink()
    assert check_database(path) is not None


async def test_a_log_that_has_lost_its_database_is_kept_for_when_it_is_restored(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("UPDATE inbox SET text = 'said last'")
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
        assert await rows(opened, "SELECT text FROM inbox") == [("said last",)]


def test_a_database_with_its_own_log_or_none_and_an_empty_log_are_accepted(path: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(_QUEUE)
        refuse_foreign_log(path)
    refuse_foreign_log(path)

    (tmp_path / "a.db-wal").touch()
    assert (has_content(path), has_content(tmp_path / "none.db"), has_content(tmp_path / "a.db")) == (
        True,
        False,
        False,
    )
