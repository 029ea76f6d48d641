"""Databases of every earlier schema version, as the program of its time left them: idle, waiting, and killed."""

import gzip
import os
import signal
import socket
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from graph_agent.app.reader import read_database
from graph_agent.inspect import Reader
from graph_agent.inspect.calls import CallView
from graph_agent.storage.legacy_names import CONTENTS, TABLES
from graph_agent.storage.sqlite import schema
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.health import check_database
from graph_agent.storage.sqlite.migrations import SCHEMA_VERSION, load_migrations
from tests.graph_agent.storage.sqlite.process import start

_FILES = Path(__file__).with_name("older")
_VERSIONS = sorted(int(path.name.split(".")[0][1:]) for path in _FILES.glob("v*.db.gz"))
_FACTS = ("checkpoints", "writes", "transcript", "call_log", "journal", "decisions")


def unpack(version: int, path: Path) -> Path:
    """Lay the database of a version down, as one that was used on this machine."""
    path.parent.mkdir(mode=0o700, parents=True)
    path.write_bytes(gzip.decompress((_FILES / f"v{version}.db.gz").read_bytes()))
    path.chmod(0o600)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE leases SET host = ?", (socket.gethostname(),))
    return path


@pytest.fixture(params=_VERSIONS)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return unpack(request.param, tmp_path / "data" / "agent.db")


def _content(path: Path) -> list[list[tuple[object, ...]]]:
    """The rows of some tables, with today's names and contents."""
    with closing(sqlite3.connect(path)) as database:
        return [_rows(database, table) for table in _FACTS]


def _rows(database: sqlite3.Connection, table: str) -> list[tuple[object, ...]]:
    former = {today: old for old, today in TABLES.items()}
    stored = former[table] if table in former and former[table] in schema.table_names(database) else table
    cursor = database.execute(f"SELECT * FROM {stored} ORDER BY 1, 2, 3, 4")  # noqa: S608 - names from here
    columns = [column for column, *_ in cursor.description]
    rows = [dict(zip(columns, row, strict=True)) for row in cursor]
    return [
        tuple(CONTENTS.get((table, name), lambda stored: stored)(value) for name, value in row.items())
        for row in rows
    ]


def _shown(path: Path) -> dict[str, object]:
    with read_database(path) as reader:
        return {
            "threads": {thread.thread_id: (thread.status, thread.turns) for thread in reader.threads()},
            "asks": [(view.record["call_id"], view.is_waiting) for view in reader.approvals()],
            "broken off": [(view.record["call_id"], view.record["reason"]) for view in _interrupted(reader)],
            "said": [
                entry.body["content"]
                for entry in reader.transcript("at-rest")
                if entry.role in ("user", "assistant")
            ],
            "amiss": [phrase for name in reader.checkpointed_threads() for phrase in reader.inconsistencies(name)],
        }


def _interrupted(reader: Reader) -> list[CallView]:
    return [view for view in reader.calls() if view.record["status"] == "interrupted"]


_EXPECTED = {
    "threads": {"at-rest": ("idle", 2), "asks": ("waiting", 1), "broken": ("interrupted", 1)},
    "asks": [("asks-1", True)],
    "broken off": [("broken-1", "outcome_unknown")],
    "said": ["do it once", "", "It is done.", "once more", "And again."],
    "amiss": [],
}


def test_there_is_a_database_of_each_version_that_was_ever_used() -> None:
    # 5 and 6, 14 and 15, 16 and 17 came together; those of version 12 are in tests/scenarios/old_databases.
    assert set(range(1, SCHEMA_VERSION)) - set(_VERSIONS) == {5, 12, 14, 16}


def test_it_is_shown_as_it_is_without_being_migrated(old: Path) -> None:
    assert (_shown(old), old.read_bytes()) == (_EXPECTED, old.read_bytes())


async def test_it_is_migrated_after_a_copy_and_everything_in_it_is_as_it_was(old: Path) -> None:
    facts, before = _content(old), old.read_bytes()

    await (await Database.open(old)).close()

    [copy] = old.parent.glob("*.backup")
    health = check_database(old)
    assert health is not None
    assert (health.version, health.foreign_tables) == (SCHEMA_VERSION, ())
    assert (_content(old), _shown(old)) == (facts, _EXPECTED)
    with read_database(old) as reader:
        assert (reader.grants(), len(reader.statistics())) == ([], 1)
    assert (_content(copy), copy.read_bytes()[60:64]) == (facts, before[60:64])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_at_any_statement_of_its_migration_it_is_migrated_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "_connect", partial(_unsynced, schema._connect))
    before = _content(unpack(1, tmp_path / "whole" / "agent.db"))
    kills = 0
    while _killed_at(kills + 1, path := unpack(1, tmp_path / str(kills) / "agent.db")):
        kills += 1
        with closing(schema.open_connection(path, load_migrations())) as database:
            found = [
                database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("user_version", "integrity_check")
            ]
        assert (found, _content(path)) == ([SCHEMA_VERSION, "ok"], before)

    assert kills > 20


def test_killed_during_its_backup_it_leaves_none_and_the_next_run_makes_a_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = unpack(1, tmp_path / "data" / "agent.db")
    before = _content(path)
    if (child := os.fork()) == 0:
        monkeypatch.setattr(os, "replace", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        schema.open_connection(path, load_migrations())
        os._exit(0)
    died = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    left = [file.suffix for file in path.parent.glob("*.backup*")]

    schema.open_connection(path, load_migrations()).close()

    [copy] = path.parent.glob("*.backup*")
    assert (died, left, copy.suffix, _content(copy)) == (-signal.SIGKILL, [".draft"], ".backup", before)


def _unsynced(connect: Callable[[Path], sqlite3.Connection], path: Path) -> sqlite3.Connection:
    """A connection that never waits for the disk: what a killed process wrote, the system still has."""
    connection = connect(path)
    connection.execute("PRAGMA synchronous=OFF")
    return connection


def _killed_at(number: int, path: Path) -> bool:
    """Open it in a child that dies before its statement of this number; False where it has fewer."""
    child = os.fork()
    if child == 0:
        left = number

        def count(_: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        connect = schema._connect

        def traced(path: Path) -> sqlite3.Connection:
            connection = connect(path)
            connection.set_trace_callback(count)
            return connection

        schema._connect = traced
        try:
            schema.open_connection(path, load_migrations()).close()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def test_two_processes_migrate_at_once_and_make_one_backup(tmp_path: Path) -> None:
    path = unpack(1, tmp_path / "data" / "agent.db")

    processes = [start("open", path) for _ in range(2)]
    shown = [process.communicate(timeout=50)[0].strip() for process in processes]

    assert shown == [f"opened version {SCHEMA_VERSION}"] * 2
    assert (len(list(path.parent.glob("*.backup"))), _shown(path)) == (1, _EXPECTED)
