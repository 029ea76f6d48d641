import asyncio
import os
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from graph_agent.app.reader import read_database
from graph_agent.config.paths import lock_dir
from graph_agent.errors import AgentError, DamagedDatabase, NewerSchema, NothingYet, StorageError
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.database_file import (
    APPLICATION_ID,
    is_own_database,
    read_header,
    refuse_foreign_log,
    require_whole,
)
from graph_agent.storage.sqlite.health import check_database
from graph_agent.storage.sqlite.migrations import SCHEMA_VERSION
from graph_agent.storage.sqlite.read_connection import ReadConnection
from graph_agent.storage.sqlite.schema import open_connection
from tests.fakes.database_rows import Rows
from tests.graph_agent.storage.sqlite.looking import execute


def _emptied(path: Path) -> None:
    path.touch()
    path.with_name(f"{path.name}.locks").mkdir()
    (path.with_name(f"{path.name}.locks") / f"{'0' * 32}.lock").touch()


def _of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE moz_places (url)")


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda _: None, NothingYet, r"nothing yet: no database at .*a\.db"),
        (Path.touch, NothingYet, r"nothing yet: no database at .*a\.db"),
        (lambda path: path.write_text("My notes. " * 100), DamagedDatabase, r"a\.db is not a database"),
        (_of_another_program, DamagedDatabase, "neither graph-agent nor"),
        (Path.mkdir, StorageError, "is a folder, not a file; name the database file"),
        (os.mkfifo, StorageError, "is a pipe, not a file"),
        (_emptied, DamagedDatabase, "is empty, though threads were kept in it"),
        (lambda path: Path(f"{path}-wal").write_bytes(b"x"), DamagedDatabase, "is gone, though its log"),
    ],
)
def test_an_unreadable_file_is_refused_with_the_reason_and_left_as_it_is(
    tmp_path: Path, make: Callable[[Path], object], error: type[StorageError], message: str
) -> None:
    path = tmp_path / "a.db"
    make(path)
    before = path.read_bytes() if path.is_file() else None

    with pytest.raises(error, match=message):
        read_database(path)

    assert (path.read_bytes() if path.is_file() else None) == before


def test_a_database_whose_creation_is_not_committed_is_nothing_yet_also_to_the_next_who_creates_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.db"
    creating = sqlite3.connect(path, isolation_level=None)
    creating.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    creating.execute("PRAGMA journal_mode = WAL")
    creating.execute("PRAGMA cache_size = 1")
    creating.execute("BEGIN IMMEDIATE")
    for number in range(40):  # More than the cache holds, so that some of it stands in the log.
        creating.execute(f"CREATE TABLE t{number} (one)")

    log = path.with_name("a.db-wal").stat().st_size
    with pytest.raises(NothingYet, match="nothing yet"):
        read_database(path)
    creating.rollback()
    creating.close()
    asyncio.run(_opened(path))

    assert log > 0
    assert check_database(path) is not None


async def _opened(path: Path) -> None:
    await (await Database.open(path)).close()


@pytest.mark.timeout(60)
def test_a_database_that_another_process_creates_meanwhile_is_never_called_damaged(tmp_path: Path) -> None:
    met = Counter[str]()

    for number in range(20):
        path = tmp_path / str(number) / "a.db"
        creator = os.fork()
        if creator == 0:
            with suppress(BaseException):
                open_connection(path)
                (lock_dir(path) / f"{'0' * 32}.lock").touch()
            os._exit(0)
        while os.waitpid(creator, os.WNOHANG) == (0, 0):
            try:
                read_database(path).close()
                met["read"] += 1
            except AgentError as error:
                met[type(error).__name__] += 1

    assert set(met) <= {"NothingYet", "read"}
    assert met["NothingYet"] > 0


def test_a_newer_database_is_refused_with_both_versions(rows: Rows) -> None:
    rows.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")

    with pytest.raises(NewerSchema, match=rf"schema version {SCHEMA_VERSION + 1}.*up to {SCHEMA_VERSION}"):
        read_database(rows.path)


def test_torn_pages_and_torn_text_are_reported_as_damage(tmp_path: Path, rows: Rows) -> None:
    whole = Rows(tmp_path / "whole.db")
    for number in range(200):
        whole.thread(f"thread-{number:04}", title="x" * 200)
    whole.close()
    content = whole.path.read_bytes()
    (tmp_path / "torn.db").write_bytes(content[: 4096 * 3] + b"\xff" * (len(content) - 4096 * 3))
    rows.thread(title="a message")
    rows.execute("UPDATE threads SET title = CAST(x'ff' AS TEXT)")

    for path in (tmp_path / "torn.db", rows.path):
        with pytest.raises(DamagedDatabase, match="damaged"), read_database(path) as reader:
            reader.threads()


def test_a_file_that_ends_before_its_last_page_is_damaged_unless_a_log_may_hold_the_rest(tmp_path: Path) -> None:
    whole = Rows(tmp_path / "whole.db")
    whole.thread()
    whole.close()
    cut = tmp_path / "cut.db"
    cut.write_bytes(whole.path.read_bytes()[:-100])

    with pytest.raises(DamagedDatabase, match="is damaged: it has"):
        read_database(cut)
    (tmp_path / "cut.db-wal").write_bytes(b"what is missing may be in here")
    read_database(cut).close()


def test_nothing_can_be_written_through_it(rows: Rows) -> None:
    rows.thread(title="a message")
    with closing(ReadConnection.open(rows.path)) as database:
        with pytest.raises(StorageError):
            database.rows("DELETE FROM threads")

        assert database.rows("SELECT thread_id FROM threads") == [("t1",)]


@pytest.fixture
def read_only_folder() -> Iterator[Path]:
    """A folder that this process may not write while the test runs, even where tests run as root."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        rows = Rows(folder / "graph-agent.db")
        rows.thread(title="a message")
        rows.close()
        rows.path.chmod(0o444)
        folder.chmod(0o555)
        uid = os.geteuid()
        if uid == 0:
            os.seteuid(65534)
        yield folder
        os.seteuid(uid)
        folder.chmod(0o755)


def test_a_database_in_a_folder_that_may_not_be_written_is_read(read_only_folder: Path) -> None:
    with read_database(read_only_folder / "graph-agent.db") as reader:
        assert [thread.thread_id for thread in reader.threads()] == ["t1"]

    assert [path.name for path in read_only_folder.iterdir()] == ["graph-agent.db"]


def test_commits_of_another_process_are_seen(rows: Rows) -> None:
    with read_database(rows.path) as reader:
        assert reader.threads() == []
        rows.execute("BEGIN IMMEDIATE")
        rows.thread(title="a message")
        assert reader.threads() == []
        rows.execute("COMMIT")

        assert [thread.thread_id for thread in reader.threads()] == ["t1"]


def test_everything_read_in_a_snapshot_is_of_one_moment(rows: Rows) -> None:
    statement = "SELECT thread_id FROM threads"
    rows.thread(title="a message")
    with closing(ReadConnection.open(rows.path)) as database:
        with database.snapshot():
            before = database.rows(statement)
            rows.thread("t2")
            meanwhile = database.rows(statement)

        assert (before, meanwhile, database.rows(statement)) == ([("t1",)], [("t1",)], [("t1",), ("t2",)])


def test_reading_leaves_the_file_byte_for_byte_as_it_was(tmp_path: Path) -> None:
    rows = Rows(tmp_path / "cold.db")
    rows.thread(title="a message")
    rows.close()
    before = rows.path.read_bytes()

    with read_database(rows.path) as reader:
        assert len(reader.threads()) == 1

    assert rows.path.read_bytes() == before


def _read_threads(path: Path) -> None:
    with read_database(path) as reader:
        reader.threads()


_OTHER_PROCESS = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("INSERT INTO inbox (thread_id, text, queued_by, queued_at) VALUES ('t', 'theirs', '', '')")
connection.commit()
connection.close()
"""


@pytest.mark.parametrize(
    "look",
    [
        read_header,
        is_own_database,
        require_whole,
        refuse_foreign_log,
        check_database,
        _read_threads,
        lambda path: asyncio.run(_open_and_close(path)),
    ],
    ids=["header", "own", "whole", "foreign log", "doctor", "reader", "second database"],
)
def test_looking_at_a_database_that_this_process_has_open_keeps_its_locks(
    database_path: Path, look: Callable[[Path], object]
) -> None:
    # Otherwise another process deletes the log under the open connection, and what is written then is lost.
    async def write() -> None:
        async with await Database.open(database_path) as database:
            await execute(database, _MESSAGE)
            await asyncio.to_thread(look, database_path)
            log = database_path.with_name(f"{database_path.name}-wal").stat().st_ino
            await asyncio.to_thread(
                subprocess.run, [sys.executable, "-c", _OTHER_PROCESS, str(database_path)], check=True
            )
            assert database_path.with_name(f"{database_path.name}-wal").stat().st_ino == log
            await execute(database, _MESSAGE)

    asyncio.run(write())
    with closing(sqlite3.connect(database_path)) as connection:
        found = connection.execute("SELECT text FROM inbox ORDER BY id").fetchall()
    assert found == [("ours",), ("theirs",), ("ours",)]


_MESSAGE = "INSERT INTO inbox (thread_id, text, queued_by, queued_at) VALUES ('t', 'ours', '', '')"


async def _open_and_close(path: Path) -> None:
    await (await Database.open(path)).close()
