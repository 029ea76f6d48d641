import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from graph_agent.app.reader import read_database
from graph_agent.app.repair import RepairMessage, repair
from graph_agent.config.paths import blob_dir
from graph_agent.errors import DamagedDatabase
from graph_agent.ports import SystemClock
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.health import check_database
from graph_agent.storage.sqlite.migrations import load_migrations
from graph_agent.storage.sqlite.schema import open_connection
from graph_agent.storage.sqlite.thread_lock import FlockThreadLock
from tests.fakes.scripted_model import ScriptedModel, calls, text
from tests.scenarios.stage import THREAD, Stage, to_the_end


async def _repaired(path: Path, **environment: str) -> list[RepairMessage]:
    home = {"GRAPH_AGENT_HOME": str(path.parent.parent), **environment}
    return [messages async for messages in repair(path, home)]


def _steps(messages: list[RepairMessage]) -> list[tuple[str, str]]:
    return [(one.step, one.stage) for one in messages]


def _change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for statement in statements:
            database.execute(statement)


def _content(path: Path) -> list[list[tuple[object, ...]]]:
    tables = ("threads", "transcript", "call_log", "branches", "journal", "decisions")
    with closing(sqlite3.connect(path)) as database:
        return [database.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3").fetchall() for table in tables]  # noqa: S608 - names from here


async def test_a_sound_database_is_not_changed(path: Path) -> None:
    before = _content(path)

    assert await _repaired(path) == []
    assert _content(path) == before
    assert await _repaired(path.parent / "none.db") == []


async def test_tables_that_disagree_are_rebuilt_once(path: Path) -> None:
    before = _content(path)
    _change(
        path, "DELETE FROM transcript", "UPDATE call_log SET status = 'executing'", "UPDATE threads SET turns = 9"
    )

    messages = await _repaired(path)

    assert _steps(messages) == [("projections", "will"), ("projections", "done")]
    assert (_content(path), await _repaired(path)) == (before, [])
    _change(path, "DELETE FROM threads")
    await _repaired(path)
    with read_database(path) as reader:
        assert [(one.thread_id, one.turns, one.title) for one in reader.threads()] == [(THREAD, 2, "first")]


async def test_a_thread_that_another_process_holds_is_skipped_and_named(path: Path) -> None:
    _change(path, "DELETE FROM transcript")
    async with await Database.open(path) as database:
        lock = FlockThreadLock(database, SystemClock())
        await lock.acquire(THREAD, "run 1")
        messages = await _repaired(path)
        await lock.release()

    [will, left] = [one for one in messages if one.step == "projections"]
    assert (will.stage, left.stage) == ("will", "left")
    assert f"is open in another process (pid {os.getpid()})" in left.text


async def test_a_damaged_file_is_salvaged_and_kept(path: Path) -> None:
    before = _content(path)
    query = "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_call_log_1'"
    with closing(sqlite3.connect(path)) as database:
        [root] = database.execute(query).fetchone()
    with path.open("r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(bytes(4096))
    damaged = path.read_bytes()

    messages = await _repaired(path)

    assert _steps(messages) == [("database", "will"), ("database", "done")]
    assert [kept.read_bytes() for kept in path.parent.glob("a.db.damaged-*")] == [damaged]
    assert (_content(path), check_database(path) is not None, await _repaired(path)) == (before, True, [])


_NEWEST = "rowid = (SELECT max(rowid) FROM {} WHERE thread_id = '{}' AND {})"


@pytest.mark.parametrize(
    ("table", "value", "of"),
    [
        ("checkpoints", "checkpoint", "1"),
        ("checkpoints", "metadata", "1"),
        ("writes", "value", "channel = 'messages'"),
    ],
)
async def test_a_value_with_flipped_bits_is_treated_as_lost_and_the_other_threads_are_repaired_too(
    path: Path, table: str, value: str, of: str
) -> None:
    stage = Stage(path, ScriptedModel(text("there")))
    async with stage.open_session(thread="other") as session:
        await session.send("another thread")
    newest = _NEWEST.format(table, THREAD, of)
    turned = f"UPDATE {table} SET {value} = CAST(x'c1' || substr({value}, 2) AS BLOB) WHERE {newest}"  # noqa: S608 - names from here
    _change(path, turned, "DELETE FROM transcript")
    damaged = _content(path)

    messages = await _repaired(path)

    assert _steps(messages)[:3] == [("values", "will"), ("values", "done"), ("values", "left")]
    assert [_content(kept) for kept in path.parent.glob("a.db.damaged-*")] == [damaged]
    assert [one for one in await _repaired(path) if one.step != "blobs"] == []
    for thread in (THREAD, "other"):
        stage.model = ScriptedModel(*[text("here")] * 3)
        async with stage.open_session(thread=thread) as session:
            await to_the_end(session, await session.start())
            rest = await session.send("are you there?")
        assert (rest.status, rest.answer) == ("done", "here")


async def test_a_call_that_only_the_journal_still_has_stays_in_the_call_log(path: Path) -> None:
    with read_database(path) as reader:
        ran = {view.record["call_id"]: view.record["result"] for view in reader.calls(THREAD)}
    del ran["n"]  # It was refused.
    _change(
        path,
        "DELETE FROM call_log",
        "DELETE FROM transcript",
        "DELETE FROM checkpoints WHERE checkpoint_id > (SELECT min(checkpoint_id) FROM checkpoints)",
    )

    messages = await _repaired(path)

    with read_database(path) as reader:
        calls_left = reader.calls(THREAD)
    assert {view.record["tool_name"] for view in calls_left} == {"(lost)"}
    assert {view.record["call_id"]: view.record["result"] for view in calls_left} == ran
    assert (_steps(messages), await _repaired(path)) == ([("projections", "will"), ("projections", "done")], [])


async def test_a_schema_that_is_no_text_is_damage_like_any_other(path: Path) -> None:
    whole = path.read_bytes()
    place = whole.index(b"CREATE TABLE inbox")
    path.write_bytes(whole[:place] + b"CREATE TABL\x8f" + whole[place + 12 :])

    with pytest.raises(DamagedDatabase):
        read_database(path)
    with pytest.raises(DamagedDatabase):
        await Database.open(path)
    messages = await _repaired(path)

    assert _steps(messages)[:2] == [("database", "will"), ("database", "done")]
    assert (check_database(path) is not None, await _repaired(path)) == (True, [])


async def test_a_file_that_is_no_database_is_not_changed(path: Path) -> None:
    path.write_bytes(b"no database " * 1000)

    messages = await _repaired(path)

    assert _steps(messages) == [("database", "will"), ("database", "left")]
    assert path.read_bytes() == b"no database " * 1000


@pytest.mark.parametrize("content", [b"another's notes", b"SQLite format 3\0" + bytes(4096), None])
async def test_a_file_of_another_program_is_not_even_made_private(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "data" / "a.db"
    path.parent.mkdir(mode=0o700)
    if content is None:
        os.mkfifo(path)
    else:
        path.write_bytes(content)
    path.chmod(0o644)

    messages = await _repaired(path)

    assert (_steps(messages), path.stat().st_mode & 0o777) == ([("database", "left")], 0o644)
    assert [one.name for one in path.parent.iterdir()] == ["a.db"]


async def test_an_older_schema_is_migrated_after_a_copy(tmp_path: Path) -> None:
    path = tmp_path / "data" / "old.db"
    open_connection(path, load_migrations()[:2]).close()

    messages = await _repaired(path)

    assert [one for one in _steps(messages) if one[0] == "schema"] == [("schema", "will"), ("schema", "done")]
    assert len(list(path.parent.glob("old.db.v2-*.backup"))) == 1


async def test_a_prune_that_was_left_over_is_finished(path: Path) -> None:
    stage = Stage(path, ScriptedModel())
    for number in range(4):
        stage.model = ScriptedModel(calls((f"c{number}", "read_a")), text("done"))
        async with stage.open_session() as session:
            await session.send(f"turn {number}")
    (path.parent.parent / "config.toml").write_text("keep_turns = 2\n")

    messages = await _repaired(path)

    assert _steps(messages)[:2] == [("pruning", "will"), ("pruning", "done")]
    assert await _repaired(path) == []


async def test_unreferenced_contents_are_removed_unless_a_damaged_file_may_still_name_them(path: Path) -> None:
    blobs = FileBlobs(blob_dir(path))
    orphan = blobs.folder / "objects" / blobs.put(b"orphan").rpartition(":")[2][:2]
    for file in orphan.iterdir():
        os.utime(file, (time.time() - 7200,) * 2)
    damaged = path.with_name("a.db.damaged-1")
    damaged.touch(mode=0o600)

    left = _steps(await _repaired(path))
    damaged.unlink()
    done = _steps(await _repaired(path))

    assert (left, done) == ([("blobs", "left")], [("blobs", "will"), ("blobs", "done")])
    assert list(orphan.iterdir()) == []


async def test_a_log_that_a_killed_process_left_is_written_back(path: Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute("INSERT INTO inbox VALUES (1, 't', 'x', 'me', '2026-01-01T00:00:00Z', NULL, 0, NULL)")
    (path.parent / "copy").mkdir(mode=0o700)
    for end in ("", "-wal"):
        copy = path.parent / "copy" / f"a.db{end}"
        copy.write_bytes(path.with_name(f"a.db{end}").read_bytes())
        copy.chmod(0o600)
    connection.close()
    copied = path.parent / "copy" / "a.db"

    messages = await _repaired(copied)

    assert _steps(messages) == [("log", "will"), ("log", "done")]
    assert not copied.with_name("a.db-wal").exists()


async def test_files_become_private_also_if_the_settings_cannot_be_read(path: Path) -> None:
    (path.parent.parent / "config.toml").write_text("keep_turns = 'none'\n")
    path.chmod(0o666)
    path.parent.chmod(0o777)

    messages = await _repaired(path)

    assert _steps(messages) == [("privacy", "will"), ("privacy", "done")]
    assert [one.stat().st_mode & 0o777 for one in (path, path.parent)] == [0o600, 0o700]
