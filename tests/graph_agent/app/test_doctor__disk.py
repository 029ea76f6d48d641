import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from graph_agent.app.doctor import Check, check_disk, own_folders
from graph_agent.ports.background import boot_id, process_started
from graph_agent.storage.sqlite.database import Database
from tests.fakes.scripted_model import ScriptedModel
from tests.scenarios.stage import THREAD, Stage
from tests.scenarios.test_branches import two_turns


def _checks(path: Path) -> dict[str, Check]:
    return {check.name: check for check in check_disk(path, {"GRAPH_AGENT_HOME": str(path.parent)})}


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    path = tmp_path / "data" / "a.db"
    path.parent.mkdir(mode=0o700)
    await two_turns(Stage(path, ScriptedModel()))
    return path


def _amiss(path: Path) -> list[str]:
    return [name for name, check in _checks(path).items() if not check.ok]


async def test_a_database_that_was_worked_with_is_well_in_every_respect(path: Path) -> None:
    checks = _checks(path)

    assert [name for name, check in checks.items() if not check.ok] == []
    assert checks["projections"].detail == "list, transcript and ledger of 1 threads say what was stored"


async def test_each_thing_that_is_amiss_is_named_by_its_own_check_with_what_to_do(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("DELETE FROM transcript")
        database.execute("CREATE TABLE theirs (a)")
    path.chmod(0o644)

    checks = _checks(path)

    assert _amiss(path) == ["schema", "projections", "privacy"]
    assert "theirs" in checks["schema"].detail
    assert ("turns are counted otherwise" in checks["projections"].detail, checks["projections"].matters) == (
        True,
        True,
    )
    assert "doctor --repair" in checks["projections"].hint
    assert checks["privacy"].hint.startswith(f"chmod go= {path}")


async def test_a_background_shell_that_nobody_has_is_named_with_how_to_take_it_up(path: Path) -> None:
    process = (os.getpid(), process_started(os.getpid()), boot_id())
    claimed = "INSERT INTO journal (thread_id, call_id, attempt, owner, status, started_at, process_group,"
    begun = f"{claimed} process_started, boot_id) VALUES (?, 'c', 1, 'life', 'success', '', ?, ?, ?)"
    columns = "INSERT INTO background_shells (thread_id, call_id, attempt, command, folder, started_at)"
    kept = f"{columns} VALUES (?, 'c', 1, 'x', '', '')"
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(begun, (THREAD, *process))
        database.execute(kept, (THREAD,))

    check = _checks(path)["shells"]

    assert (check.ok, check.matters) == (False, False)
    assert check.detail == f"in the background: sh1 (pid {os.getpid()}, thread {THREAD})"
    assert check.hint == f"graph-agent resume {THREAD} takes up what its thread left running"


async def test_the_folder_that_the_agent_made_is_looked_at_and_one_that_was_there_is_not(path: Path) -> None:
    home = path.parent.parent
    environment = {"GRAPH_AGENT_HOME": str(home)}

    assert own_folders(path, environment) == [home / "data", home / "data" / "logs"]
    assert own_folders(home / "elsewhere.db", environment) == [home / "data" / "logs"]


async def test_a_log_that_was_never_written_back_is_told_with_its_size(path: Path) -> None:
    async with await Database.open(path):
        os.truncate(path.with_name("a.db-wal"), 100_000_000)
        check = _checks(path)["size"]

    assert (check.ok, check.matters, "log 100.0 MB" in check.detail) == (False, False, True)


@pytest.mark.parametrize("content", [b"no database " * 1000, b"SQLite format 3\0" + bytes(5000)])
def test_with_a_broken_file_every_check_still_says_something(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(content)
    path.chmod(0o600)

    checks = _checks(path)

    assert ([name for name, check in checks.items() if not check.ok], len(checks)) == (["database"], 8)
    assert "doctor --repair" in checks["database"].hint
