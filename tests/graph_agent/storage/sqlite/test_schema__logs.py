import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from graph_agent.errors import DamagedDatabase
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.health import check_database
from graph_agent.storage.sqlite.schema import refuse_foreign_log, refuse_orphaned_log


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
    refuse_orphaned_log(path.with_name("none.db"))


def test_an_empty_log_without_a_database_keeps_nobody_from_beginning(tmp_path: Path) -> None:
    (tmp_path / "a.db-wal").touch()

    refuse_orphaned_log(tmp_path / "a.db")
