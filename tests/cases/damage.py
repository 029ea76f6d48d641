"""Damage to single values and rows of a database, one statement each, and the commands that meet it."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tests.cases.bench import Bench, bash
from tests.fakes.openai_server import TCS, TXT, Reply

__all__ = ["HURT", "READERS", "REPLIES", "WELL", "WRITERS", "Damage", "damages", "furnish", "hurt"]

HURT, WELL = "hurt", "well"
"""The thread that is damaged, and one whose values it may be given."""

_WRITE = ("{0}1", "write_file", {"file_path": "{0}.txt", "content": "one\n"})


def _turns(name: str) -> list[Reply]:
    written = (f"{name}1", "write_file", {"file_path": f"{name}.txt", "content": "one\n"})
    return [TCS(written), TCS(bash(f"{name}2", f"echo {name} >> log")), TXT(f"{name} is done")]


REPLIES = [
    *_turns(WELL),
    *_turns(HURT),
    TCS(bash("shell1", "sleep 1", background=True)),
    TXT("it runs"),
    TCS(bash("ask1", "touch a"), bash("ask2", "touch b")),
]
"""What the model says while the threads are made."""

READERS: tuple[tuple[str, ...], ...] = (
    ("threads", "show", HURT),
    ("history", HURT),
    ("inspect", HURT),
    ("graph", HURT),
    ("calls", HURT),
    ("approvals", "list"),
    ("recover", HURT),
    ("threads", "search", "done"),
    ("threads", "export", HURT),
    ("threads", "diff", HURT),
    ("diff", HURT, WELL),
    ("tasks", "list"),
)
WRITERS: tuple[tuple[str, ...], ...] = (
    ("run", "--resume", HURT, "--approve", "all", "--recover", "cancel"),
    ("run", "--resume", HURT, "and now?"),
    ("fork", HURT),
    ("rewind", HURT, "--dry-run"),
    ("approvals", "approve", "ask1"),
    ("compact", HURT),
)
_KEYS = {"thread_id", "checkpoint_ns"}


_TASK = """
INSERT INTO tasks (task_id, thread_id, prompt, workspace, options, state, outcome, not_before, added_by, added_at)
VALUES ('task1', ?, 'first', ?, '{"mode": "default", "agent": "", "flags": {}}', 'failed', 'limit',
    '2026-01-01T00:00:00.000Z', 'pid 1', '2026-01-01T00:00:00.000Z')
"""


@dataclass(frozen=True)
class Damage:
    """One statement."""

    table: str
    what: str
    """The column and what becomes of it, or which rows are gone."""
    sql: str

    def __str__(self) -> str:
        return f"{self.table}-{self.what}".replace(" ", "_")


def furnish(bench: Bench) -> Path:
    """A database with every kind of row: a thread that ended, and one with a rewind, questions and a message."""
    assert bench.run("first", "--thread", WELL).code == 0
    assert bench.run("first", "--thread", HURT).code == 0
    ended = bench.command.json("history", HURT)["checkpoints"][0]["checkpoint_id"]
    assert bench.run("background", "--resume", HURT).code == 0
    assert bench.command("rewind", ended, "--yes").returncode == 0
    assert bench.ask("second", "--resume", HURT).code == 3
    assert bench.ask("queued", "--resume", HURT).code == 3
    assert bench.command("approvals", "approve", "ask2", "--always").returncode == 0
    database = bench.home / "data" / "graph-agent.db"
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        # A task has a thread of its own; here it is this one, so that its row is damaged with the others.
        connection.execute(_TASK, (HURT, str(bench.workspace)))
    return database


def hurt(path: Path, damage: Damage, target: Path) -> bool:
    """Copy the database with its contents and damage the copy; whether that changed anything."""
    shutil.copytree(path.parent, target.parent, dirs_exist_ok=True)
    with closing(sqlite3.connect(target, isolation_level=None)) as database:
        rows = f"SELECT rowid, * FROM {damage.table}"  # noqa: S608 - names
        before = repr(database.execute(rows).fetchall())
        try:
            database.execute(damage.sql)
        except sqlite3.IntegrityError:
            return False
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return repr(database.execute(rows).fetchall()) != before


def damages(path: Path) -> Iterator[Damage]:
    """Every damage of the table: column by column, and row by row."""
    with closing(sqlite3.connect(path)) as database:
        tables = [
            str(name)
            for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
        ]
        for table in tables:
            columns = database.execute(f"PRAGMA table_info({table})").fetchall()
            if "thread_id" not in {column[1] for column in columns} or table == "search_entries":
                continue
            if not database.execute(f"SELECT 1 FROM {table} WHERE thread_id = ?", (HURT,)).fetchone():  # noqa: S608 - a name
                continue
            for _, column, kind, is_required, _, _ in columns:
                if column not in _KEYS:
                    yield from _of_column(table, column, kind, may_be_null=not is_required)
            yield from _of_rows(table)


def _of_column(table: str, column: str, kind: str, *, may_be_null: bool) -> Iterator[Damage]:
    values = {
        "bytes": "x'ff00fe'",
        "cut": f"substr({column}, 1, length({column}) / 2)",
        "other": f"(SELECT {column} FROM {table} WHERE thread_id = '{WELL}' ORDER BY rowid DESC LIMIT 1)",  # noqa: S608 - names
        "list": "'[]'" if kind != "BLOB" else "x'90'",
        "map": "'{}'" if kind != "BLOB" else "x'80'",
        "text": "'lorem'",
        "number": "7",
        "negative": "-1",
        "huge": "99999999999999999",
        "broken": "'{\"a\": '",
    }
    # What LangGraph notes at the head for itself is written again by the next run.
    which = "channel IN ('messages', 'calls')" if table == "writes" else f"{column} IS NOT NULL"
    if may_be_null:
        values["null"] = "NULL"
    if table == "pruned_checkpoints":
        del values["other"]
    for name, value in values.items():
        newest = f"rowid = (SELECT max(rowid) FROM {table} WHERE thread_id = '{HURT}' AND {which})"  # noqa: S608 - names
        yield Damage(table, f"{column} {name}", f"UPDATE {table} SET {column} = {value} WHERE {newest}")  # noqa: S608 - names


def _of_rows(table: str) -> Iterator[Damage]:
    own = f"DELETE FROM {table} WHERE thread_id = '{HURT}'"  # noqa: S608 - names
    yield Damage(table, "all rows missing", own)
    numbered = "SELECT rowid, row_number() OVER (ORDER BY rowid) AS n, count(*) OVER () AS m"
    kept = "AND idx >= 0" if table == "writes" else ""
    rows = f"{numbered} FROM {table} WHERE thread_id = '{HURT}' {kept}"
    gone = {"every second": "n % 2 = 0", "first": "n = 1", "newest": "n = m", "all but newest": "n < m"}
    for what, which in gone.items():
        sql = f"{own} AND rowid IN (SELECT rowid FROM ({rows}) WHERE {which})"  # noqa: S608 - names
        yield Damage(table, f"{what} missing", sql)
