import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

import policy
from graph_agent.app.reader import read_database
from graph_agent.errors import DamagedDatabase, NewerSchema, StorageError, UsageError
from graph_agent.ports import SystemClock
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.health import ONE_OF, Health, back_up, check_database
from graph_agent.storage.sqlite.migrations import SCHEMA_VERSION
from graph_agent.storage.sqlite.row_values import MODES
from graph_agent.storage.sqlite.threads import ThreadTable
from tests.fakes.database_rows import START, Rows, record_of
from tests.graph_agent.storage.sqlite.looking import execute


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    path = tmp_path / "data" / "a.db"
    await (await Database.open(path)).close()
    return path


def test_a_sound_database_is_reported_with_its_version_and_size(path: Path, tmp_path: Path) -> None:
    shown = check_database(path)

    assert shown == Health(SCHEMA_VERSION, 0, (), has_search_index=True)
    assert check_database(tmp_path / "none.db") is None


async def test_a_database_that_was_pruned_is_sound(path: Path, tmp_path: Path) -> None:
    async with await Database.open(path) as database:
        await execute(database, "INSERT INTO pruned_checkpoints VALUES ('t', 'c')")

    back_up(path, tmp_path / "copy.db")

    assert check_database(path) == Health(SCHEMA_VERSION, 0, (), has_search_index=True)


def test_tables_of_another_program_are_named_and_tables_of_ours_that_are_gone_are_damage(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE theirs (a)")
        shown = check_database(path)
        database.execute("DROP TABLE call_log")

    assert shown == Health(SCHEMA_VERSION, 0, ("theirs",), has_search_index=True)
    with pytest.raises(DamagedDatabase, match="lacks the tables call_log"):
        check_database(path)


@pytest.mark.parametrize(("table", "column"), ONE_OF)
def test_a_word_that_a_column_cannot_have_is_named_with_its_thread_and_value(
    rows: Rows, table: str, column: str
) -> None:
    rows.thread()
    rows.call(record_of("success"))
    rows.journal("success", {"output": ""})
    rows.decision("approve")
    rows.grant("bash(ls)")
    rows.message("user", {"content": "hi"})
    rows.execute(
        "INSERT INTO rewinds (thread_id, checkpoint_id, head, scope, plan, status, at) "
        "VALUES ('t1', 'c1', 'c2', 'both', '{}', 'done', ?)",
        START,
    )
    rows.execute(
        "INSERT INTO tasks (task_id, thread_id, prompt, workspace, options, state, not_before, added_by, added_at) "
        "VALUES ('k1', 't1', 'go', '/', '{\"flags\": {}}', 'done', ?1, 'pid 1', ?1)",
        START,
    )

    rows.execute(f"UPDATE {table} SET {column} = 'lorem'")  # noqa: S608 - names of the table above
    with read_database(rows.path) as reader:
        [found] = [row for row in reader.damaged_rows() if row.startswith(f"thread t1: row 1 of {table}")]

    assert f"({column})" in found
    assert found.endswith("with the value 'lorem'")


def test_the_modes_that_may_be_stored_are_those_of_policy() -> None:
    assert MODES == policy.MODES


async def test_a_thread_in_an_unknown_mode_is_not_opened(path: Path) -> None:
    async with await Database.open(path) as database:
        threads = ThreadTable(database, SystemClock())
        await threads.create("t", "/w", "", "default")
        await execute(database, "UPDATE threads SET mode = 'lorem'")

        with pytest.raises(DamagedDatabase, match="Thread t has the mode 'lorem'"):
            await threads.get("t")


def test_something_other_than_a_file_is_reported_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    for name, kind in (("pipe", "a pipe"), (".", "a folder")):
        with pytest.raises(StorageError, match=f"is {kind}, not a file"):
            check_database(tmp_path / name)
    with pytest.raises(UsageError, match="is a pipe"):
        back_up(tmp_path / "pipe", tmp_path / "copy")


def test_a_database_cut_short_is_damaged_and_left_as_it_is(path: Path) -> None:
    data = path.read_bytes()[:-100]
    path.write_bytes(data)

    with pytest.raises(DamagedDatabase, match=r"a\.db"):
        check_database(path)
    assert path.read_bytes() == data


def test_a_foreign_or_newer_database_is_named_as_such(path: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.db"
    with closing(sqlite3.connect(foreign)) as theirs:
        theirs.executescript("CREATE TABLE threads (a); PRAGMA user_version = 1")
    (tmp_path / "text.db").write_text("no database at all, but long enough to be looked at " * 10)
    newer = sqlite3.connect(path)
    newer.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    newer.close()

    with pytest.raises(DamagedDatabase, match="no database of this program"):
        check_database(foreign)
    with pytest.raises(DamagedDatabase, match="cannot be read"):
        check_database(tmp_path / "text.db")
    with pytest.raises(NewerSchema, match=f"schema {SCHEMA_VERSION + 1}"):
        check_database(path)


async def test_a_copy_is_private_whole_and_one_file_also_while_others_write(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    async with await Database.open(path) as database:
        await execute(database, "PRAGMA user_version")
        size = back_up(path, target)

    assert (size, stat.S_IMODE(target.stat().st_mode)) == (target.stat().st_size, 0o600)
    assert sorted(file.name for file in tmp_path.glob("copy.db*")) == ["copy.db"]
    assert check_database(target) == Health(SCHEMA_VERSION, 0, (), has_search_index=True)


def test_a_copy_never_replaces_anything_and_needs_something_to_copy(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "there"
    target.write_text("mine")

    with pytest.raises(UsageError, match="exists; name a file that does not"):
        back_up(path, target)
    with pytest.raises(UsageError, match="nothing to copy"):
        back_up(tmp_path / "none.db", tmp_path / "new")
    assert (target.read_text(), (tmp_path / "new").exists()) == ("mine", False)
