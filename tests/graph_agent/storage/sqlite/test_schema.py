import os
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import pytest

from graph_agent.errors import DamagedDatabase, NewerSchema, StorageError
from graph_agent.storage.private_files import APPLICATION_ID
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.migrations import SCHEMA_VERSION, Migration, load_migrations
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
    assert f"is torn: {len(torn)} bytes where its header promises {len(whole)}" in str(refusal)
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
