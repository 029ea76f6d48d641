import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from graph_agent.app.reader import read_database
from graph_agent.errors import DamagedDatabase, NewerSchema, NothingYet, StorageError
from graph_agent.storage.sqlite.migrations import SCHEMA_VERSION
from graph_agent.storage.sqlite.read_connection import ReadConnection
from tests.fakes.database_rows import Rows


@pytest.mark.parametrize("exists", [False, True])
def test_a_file_that_is_missing_or_empty_means_nothing_yet(tmp_path: Path, *, exists: bool) -> None:
    path = tmp_path / "none.db"
    if exists:
        path.touch()

    with pytest.raises(NothingYet, match=r"nothing yet: no database at .*none\.db"):
        read_database(path)


def test_a_file_that_is_no_database_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("These are my notes. " * 100)
    before = path.read_bytes()

    with pytest.raises(DamagedDatabase, match=r"notes\.txt is not a database"):
        read_database(path)

    assert path.read_bytes() == before


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bookmarks.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE moz_places (url)")
    connection.close()

    with pytest.raises(DamagedDatabase, match="neither graph-agent nor"):
        read_database(path)


def test_a_newer_database_is_refused_with_both_versions_named(rows: Rows) -> None:
    rows.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")

    with pytest.raises(NewerSchema, match=rf"schema version {SCHEMA_VERSION + 1}.*up to {SCHEMA_VERSION}"):
        read_database(rows.path)


def test_a_torn_page_is_named_as_damage(tmp_path: Path) -> None:
    whole = Rows(tmp_path / "whole.db")
    for number in range(200):
        whole.thread(f"thread-{number:04}", title="x" * 200)
    whole.close()
    torn = tmp_path / "torn.db"
    content = bytearray((tmp_path / "whole.db").read_bytes())
    content[4096 * 3 :] = b"\xff" * (len(content) - 4096 * 3)
    torn.write_bytes(content)

    with pytest.raises(DamagedDatabase, match="damaged"), read_database(torn) as reader:
        reader.threads()


def test_text_that_is_no_text_is_named_as_damage(rows: Rows) -> None:
    rows.thread()
    rows.execute("UPDATE threads SET title = CAST(x'ff' AS TEXT)")

    with read_database(rows.path) as reader, pytest.raises(DamagedDatabase, match="damaged"):
        reader.threads()


def test_a_folder_is_told_as_one(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="is a folder, not a file; name the database file"):
        read_database(tmp_path)


def test_a_file_that_was_emptied_is_no_fresh_start(tmp_path: Path) -> None:
    emptied = tmp_path / "a.db"
    emptied.touch()
    (tmp_path / "a.db.locks").mkdir()
    (tmp_path / "a.db.locks" / f"{'0' * 32}.lock").touch()

    with pytest.raises(DamagedDatabase, match="is empty, though threads were kept in it"):
        read_database(emptied)


def test_a_file_that_ends_before_its_last_page_is_named_as_damage_before_anything_is_read(tmp_path: Path) -> None:
    whole = Rows(tmp_path / "whole.db")
    whole.thread()
    whole.close()
    cut = tmp_path / "cut.db"
    cut.write_bytes((tmp_path / "whole.db").read_bytes()[:-100])

    with pytest.raises(DamagedDatabase, match="is damaged: it has"):
        read_database(cut)
    (tmp_path / "cut.db-wal").write_bytes(b"what is missing may be in here")
    read_database(cut).close()


def test_nothing_can_be_written_through_it(rows: Rows) -> None:
    rows.thread()
    database = ReadConnection.open(rows.path)

    with pytest.raises(StorageError):
        database.rows("DELETE FROM threads")

    assert database.rows("SELECT thread_id FROM threads") == [("t1",)]
    database.close()


@pytest.fixture
def read_only_folder() -> Iterator[Path]:
    """A folder that this process may not write while the test runs, even where tests run as root."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        rows = Rows(folder / "graph-agent.db")
        rows.thread()
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


def test_what_another_process_commits_meanwhile_is_seen(rows: Rows) -> None:
    with read_database(rows.path) as reader:
        assert reader.threads() == []
        rows.execute("BEGIN IMMEDIATE")
        rows.thread()
        assert reader.threads() == []
        rows.execute("COMMIT")

        assert [thread.thread_id for thread in reader.threads()] == ["t1"]


def test_what_is_read_in_one_moment_fits_together(rows: Rows) -> None:
    rows.thread()
    database = ReadConnection.open(rows.path)

    with database.snapshot():
        before = database.rows("SELECT thread_id FROM threads")
        rows.thread("t2")
        meanwhile = database.rows("SELECT thread_id FROM threads")
    after = database.rows("SELECT thread_id FROM threads")

    database.close()
    assert (before, meanwhile, after) == ([("t1",)], [("t1",)], [("t1",), ("t2",)])


def test_reading_leaves_the_file_byte_for_byte_as_it_was(tmp_path: Path) -> None:
    rows = Rows(tmp_path / "cold.db")
    rows.thread()
    rows.close()
    before = rows.path.read_bytes()

    with read_database(rows.path) as reader:
        assert len(reader.threads()) == 1

    assert rows.path.read_bytes() == before


def test_a_pipe_in_its_place_is_told_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.db")

    with pytest.raises(StorageError, match="is a pipe, not a file"):
        ReadConnection.open(tmp_path / "pipe.db")


def test_a_log_without_its_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.db-wal").write_bytes(b"something")

    with pytest.raises(DamagedDatabase, match="is gone, though its log"):
        ReadConnection.open(tmp_path / "a.db")
