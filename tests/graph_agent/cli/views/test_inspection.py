import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from graph_agent.app.reader import read_database
from graph_agent.cli.views import inspection
from graph_agent.cli.views.inspection import find_value, watch_state
from graph_agent.errors import UnknownId, UsageError
from graph_agent.ports.background import process_started
from tests.fakes import light_program
from tests.fakes.played_thread import play
from tests.fakes.scripted_model import calls, text


def test_keys_that_hold_dots_are_found() -> None:
    whole = {"values": {"calls": {"functions.bash:0": {"status": "pending"}}}}

    assert find_value(whole, "calls.functions.bash:0.status") == "pending"


@pytest.mark.parametrize(
    ("piece", "words"),
    [
        ("nothing", "no 'nothing' there, only the keys messages, turn"),
        ("messages.7", "no '7' there, only a list of 1"),
        ("messages.0.x", "no 'x' there, only a plain value"),
    ],
)
def test_a_path_that_leads_nowhere_says_what_is_there(piece: str, words: str) -> None:
    whole = {"values": {"messages": ["go"], "turn": {}}}

    with pytest.raises(UsageError, match=words):
        find_value(whole, piece)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    play(tmp_path / "a.db", "go", replies=(calls(("w", "write_a")),))
    return tmp_path / "a.db"


def started(path: Path, *options: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", light_program.__name__, "inspect", "--db", str(path), "--watch", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def next_state(process: "subprocess.Popen[str]") -> dict[str, Any]:
    assert process.stdout is not None
    state: dict[str, Any] = json.loads(process.stdout.readline())
    return state


def forgotten(path: Path) -> tuple[int, int, int]:
    """Take the newest write away, and the log into the database; what SQLite says of the latter."""
    connection = sqlite3.connect(path, timeout=5, isolation_level=None)
    connection.execute("DELETE FROM writes WHERE channel = '__interrupt__'")
    done: tuple[int, int, int] = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    connection.close()
    return done


def test_each_change_is_a_line_nothing_stays_locked_another_file_may_come_and_ctrl_c_ends_it(
    path: Path, tmp_path: Path
) -> None:
    process = started(path, "--json")

    first = next_state(process)
    taken_in = forgotten(path)
    second = next_state(process)
    play(tmp_path / "other.db", "go", replies=(text("done"),))
    for ending in ("-wal", "-shm"):
        path.with_name(f"{path.name}{ending}").unlink(missing_ok=True)
    (tmp_path / "other.db").replace(path)
    third = next_state(process)
    process.send_signal(signal.SIGINT)
    told = process.communicate(timeout=60)

    assert [(state["status"], len(state["interrupts"])) for state in (first, second, third)] == [
        ("waiting", 1),
        ("waiting", 0),
        ("idle", 0),
    ]
    assert taken_in[0] == 0
    assert (told, process.returncode) == (("", ""), 130)


def test_it_ends_when_nobody_reads_any_more(path: Path) -> None:
    process = started(path)
    assert process.stdout is not None
    process.stdout.readline()

    process.stdout.close()
    code = process.wait(timeout=60)

    assert process.stderr is not None
    assert (process.stderr.read(), code) == ("", 0)
    process.stderr.close()


def statuses(shown: str) -> list[str]:
    return [json.loads(line)["status"] for line in shown.splitlines()]


def test_it_ends_with_the_status_asked_for(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    watch_state(path, "", None, until="waiting", as_json=True, full=False)

    assert statuses(capsys.readouterr().out) == ["waiting"]


def test_it_ends_when_the_thread_was_deleted_whatever_it_waits_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deleted(_seconds: float) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("DELETE FROM threads")

    monkeypatch.setattr(time, "sleep", deleted)

    with pytest.raises(UnknownId, match="was deleted"):
        watch_state(path, "", None, until="idle", as_json=True, full=False)


def test_a_terminal_shows_one_picture_that_fits(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection, "supports_cursor", lambda: True)
    monkeypatch.setattr(inspection, "_state_lines", lambda *_, **__: [f"line {number}" for number in range(100)])
    monkeypatch.setenv("LINES", "10")

    watch_state(path, "", None, until="waiting", as_json=False, full=False)

    shown = capsys.readouterr().out
    assert shown.startswith("\x1b[?7l\x1b[H\x1b[2J")
    assert shown.splitlines()[1:9] == [*(f"line {number}" for number in range(1, 8)), "… 92 more lines"]


def test_a_file_that_cannot_be_read_for_a_while_is_told_once_and_waited_for(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, looks = path.read_bytes(), iter(range(6))

    def pass_time(_seconds: float) -> None:
        match next(looks):
            case 0:
                path.write_bytes(b"no database " * 10)
            case 3:
                path.write_bytes(whole)
            case 5:
                raise KeyboardInterrupt

    path.with_name(f"{path.name}-wal").unlink(missing_ok=True)
    monkeypatch.setattr(time, "sleep", pass_time)

    with pytest.raises(KeyboardInterrupt):
        watch_state(path, "", None, until=None, as_json=True, full=False)

    told = capsys.readouterr()
    assert statuses(told.out) == ["waiting"] * 2
    assert told.err.count("is not a database") == 1


def test_the_death_of_whoever_holds_the_thread_is_a_change(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = subprocess.Popen(["sleep", "60"])
    with read_database(path) as reader:
        [thread] = reader.threads()
        asked = next(entry for entry in reader.history(thread.thread_id) if entry.node == "reasoning")
    with closing(sqlite3.connect(path)) as connection, connection:
        lease = (holder.pid, process_started(holder.pid))
        connection.execute("UPDATE leases SET ended_at = NULL, pid = ?, process_started = ?", lease)
        head = (asked.checkpoint_id, '["tool_routing"]')
        connection.execute("UPDATE threads SET checkpoint_id = ?, next_nodes = ?", head)
    connection.close()
    os.utime(path, (0, 0))

    def pass_time(_seconds: float) -> None:
        holder.kill()
        holder.wait()

    monkeypatch.setattr(time, "sleep", pass_time)

    watch_state(path, "", None, until="resumable", as_json=True, full=False)

    assert statuses(capsys.readouterr().out) == ["running", "resumable"]
