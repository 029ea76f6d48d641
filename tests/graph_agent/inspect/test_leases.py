import os
import socket
import subprocess
import sys
from pathlib import Path

from graph_agent.app.reader import read_database
from graph_agent.inspect import Lease, Reader, is_alive
from graph_agent.inspect.calls import read_leases, view_calls
from graph_agent.ports import SystemClock
from graph_agent.ports.background import boot_id, process_started
from graph_agent.storage import open_read_store
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.thread_lock import FlockThreadLock
from graph_agent.storage.sqlite.threads import ThreadTable
from tests.fakes.database_rows import START, Rows, record_of


def test_every_lease_is_known_and_whose_process_lives(rows: Rows) -> None:
    rows.lease("living")
    rows.lease("dead", process_started="0")
    rows.lease("ended", ended_at=START)
    database = open_read_store(rows.path)

    leases = read_leases(database)

    database.close()
    assert set(leases.by_thread) == {"living", "dead", "ended"}
    assert leases.held == {"living"}


def test_a_call_that_ends_with_its_process_while_we_read_is_not_interrupted(rows: Rows, reader: Reader) -> None:
    rows.thread(next_nodes=("tool_execution",))
    rows.call(record_of("executing"))
    rows.lease(process_started="0")
    database = open_read_store(rows.path)
    leases = read_leases(database)

    rows.execute("UPDATE call_log SET status = 'success', record = json_set(record, '$.status', 'success')")
    rows.execute("UPDATE threads SET next_nodes = '[]'")
    [call] = view_calls(database.calls(), leases.held.__contains__)

    database.close()
    assert call.record["status"] == "success"
    assert reader.thread("t1").status == "idle"


_BOOT = boot_id()


_HOST = socket.gethostname()


def _lease(
    pid: int, started: str | None, *, boot_id: str = _BOOT, ended_at: str | None = None, host: str = _HOST
) -> Lease:
    return Lease(pid, started or "", boot_id, host, "then", ended_at)


def test_a_running_process_with_the_noted_start_time_is_alive() -> None:
    assert is_alive(_lease(os.getpid(), process_started(os.getpid())))


def test_a_reused_pid_an_earlier_boot_and_an_ended_lease_are_not_alive() -> None:
    started = process_started(os.getpid())

    assert not is_alive(_lease(os.getpid(), f"{started}0"))
    assert not is_alive(_lease(os.getpid(), started, boot_id="another boot"))
    assert not is_alive(_lease(os.getpid(), started, ended_at="then"))


def test_a_killed_process_is_dead_even_before_its_parent_has_collected_it() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    lease = _lease(process.pid, process_started(process.pid))
    assert is_alive(lease)

    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    assert not is_alive(lease)
    process.communicate()
    assert not is_alive(lease)


def test_a_process_on_another_host_counts_as_alive_until_it_ends_its_lease() -> None:
    assert is_alive(_lease(1, "0", boot_id="theirs", host="elsewhere"))
    assert not is_alive(_lease(1, "0", boot_id="theirs", host="elsewhere", ended_at="then"))


async def test_the_lease_that_the_store_writes_is_read_as_that_of_a_living_process(tmp_path: Path) -> None:
    async with await Database.open(tmp_path / "db") as database:
        await ThreadTable(database, SystemClock()).create("t1", "/w", "m", "default")
        lock = FlockThreadLock(database, SystemClock())
        await lock.acquire("t1", "life")
        with read_database(database.path) as reader:
            held = reader.thread("t1").holder
            await lock.release()
            released = reader.thread("t1").holder

    assert held is not None
    assert (held.pid, held.host, released) == (os.getpid(), _HOST, None)
