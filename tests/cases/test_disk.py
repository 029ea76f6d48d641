"""What a disk can do to the database, by the real command: said clearly, nothing changed, nothing run twice."""

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.cases.bench import Bench, SetUp, bash
from tests.fakes.openai_server import TCS, TXT
from tests.graph_agent.storage.sqlite.test_migrations import unpack
from tests.scenarios.command import until

_READERS = (("threads", "list"), ("calls",), ("approvals", "list"), ("inspect",))


def _done(set_up: SetUp) -> tuple[Bench, Path]:
    bench = set_up(TCS(bash("c1", "echo once >> log")), TXT("ok"), TXT("again"))
    assert bench.run("go", "--thread", "t").ending == (0, "ok")
    return bench, bench.home / "data" / "graph-agent.db"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def _garbage(path: Path) -> None:
    path.write_bytes(b"no database at all " * 500)


def _emptied(path: Path) -> None:
    path.write_bytes(b"")


def _newer(path: Path) -> None:
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.close()


def _foreign(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as database:
        database.executescript("CREATE TABLE notes (text)")


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (_cut, "is damaged"),
        (_garbage, "not a database"),
        (_emptied, "is empty, though threads were kept"),
        (_newer, "schema version 99"),
        (_foreign, "name another with --db"),
    ],
)
def test_a_harmed_database_is_named_by_every_command_and_left_as_it_is(
    set_up: SetUp, harm: Callable[[Path], None], said: str
) -> None:
    bench, path = _done(set_up)
    harm(path)
    before = _digest(path)

    ran = [bench.command(*words) for words in (*_READERS, ("run", "--resume", "t", "more"))]

    told = [(said in ended.stderr, str(path) in ended.stderr, "Traceback" in ended.stderr) for ended in ran]
    assert ([ended.returncode for ended in ran], told) == ([1] * 5, [(True, True, False)] * 5)
    assert (_digest(path), bench.read("log"), len(bench.server.bodies)) == (before, b"once\n", 2)


def test_a_database_put_back_from_its_copy_goes_on_where_it_was(set_up: SetUp) -> None:
    bench, path = _done(set_up)
    copied = bench.command("doctor", "--backup", str(bench.folder / "copy.db"), "--json")
    _cut(path)
    failed = bench.command("doctor", "--json")
    shutil.copy(bench.folder / "copy.db", path)

    gone_on = bench.ask("more", "--resume", "t")

    broken = [check["name"] for check in json.loads(failed.stdout)["checks"] if not check["ok"]]
    assert (copied.returncode, failed.returncode, "database" in broken) == (0, 1, True)
    assert (gone_on.ending, bench.read("log")) == ((0, "again"), b"once\n")


def test_a_folder_named_as_the_database_is_told_so(set_up: SetUp) -> None:
    bench = set_up(TXT("ok"))

    told = [bench.command(*command, "--db", str(bench.folder)) for command in (("threads", "list"), ("run", "go"))]

    assert [(ended.returncode, "folder" in ended.stderr) for ended in told] == [(1, True)] * 2


def test_a_database_replaced_while_a_command_runs_takes_nothing_more_and_the_call_comes_back_as_unknown(
    set_up: SetUp,
) -> None:
    bench = set_up(TXT("ok"), TCS(bash("c1", "echo once >> log; sleep 1")), TXT("never asked for"))
    bench.run("go", "--thread", "kept")
    path = bench.home / "data" / "graph-agent.db"
    running = bench.command.start("run", "more", "--resume", "kept", "--mode", "bypassPermissions")
    until(lambda: bench.read("log") is not None)
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)

    code = running.wait(timeout=30)
    left = bench.command.json("calls")["calls"]
    resumed = bench.run("--resume", "kept")

    assert (code, [(call["call_id"], call["status"], call["reason"]) for call in left]) == (
        1,
        [("c1", "interrupted", "outcome_unknown")],
    )
    assert (resumed.code, bench.read("log"), len(bench.server.bodies)) == (4, b"once\n", 2)


@pytest.mark.parametrize(
    "room",
    [0, 474_000, *(pytest.param(room, marks=pytest.mark.sweep) for room in range(24_000, 600_000, 18_000))],
)
def test_wherever_the_disk_gets_full_it_is_said_and_afterwards_nothing_runs_twice(set_up: SetUp, room: int) -> None:
    bench = set_up(TCS(bash("c1", "echo once >> log")), TXT("ok"), TXT("again"), TXT("more"), by_history=True)

    failed = bench.command.limited(room, "run", "go", "--thread", "full", "--mode", "bypassPermissions")
    ran = bench.read("log")
    if (
        not (bench.home / "data" / "graph-agent.db").exists()
        or not bench.command.json("threads", "list")["threads"]
    ):
        gone_on = bench.run("go", "--thread", "full")
    else:
        gone_on = bench.run("--resume", "full", "--recover", "retry-safe")
        if gone_on.code == 2:
            # There was room for the thread, and none for its message: that is said, and it is sent again.
            assert ("no message of it was stored" in gone_on.err, ran, bench.server.bodies) == (True, None, [])
            gone_on = bench.run("go", "--thread", "full")

    assert (failed.returncode, "the disk is full" in failed.stderr, "Traceback" in failed.stderr) == (
        1,
        True,
        False,
    )
    assert "graph-agent.db" in failed.stderr
    # Either its outcome is known, or it is asked about. A reply that found no room was never heard: the model is
    # asked again, and may want something else.
    assert gone_on.code in (0, 4)
    assert bench.read("log") in ((ran,) if gone_on.code == 4 else (ran, b"once\n"))


def test_a_question_left_in_a_database_of_the_first_version_is_answered_and_what_was_broken_off_is_not_run(
    set_up: SetUp,
) -> None:
    bench = set_up(TXT("thanks"))
    path = unpack(1, bench.home / "data" / "graph-agent.db")

    gone_on = bench.ask("--resume", "asks", "--approve", "asks-1", "--workspace", str(bench.workspace))
    left = bench.ask("--resume", "broken", "--workspace", str(bench.workspace))

    assert (gone_on.ending, bench.read("log")) == ((0, "thanks"), b"asked\n")
    assert (left.code, "broken-1" in left.err, len(bench.server.bodies)) == (4, True, 1)
    assert len(list(path.parent.glob("*.v1-*.backup"))) == 1
