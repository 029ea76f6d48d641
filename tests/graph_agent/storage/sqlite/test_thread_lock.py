import asyncio
import fcntl
import os
import signal
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from graph_agent.config.paths import lock_dir
from graph_agent.errors import InternalError, StorageError, ThreadHeld
from graph_agent.ports import Holder
from graph_agent.storage import Connection
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.thread_lock import (
    FlockThreadLock,
    end_lease,
    exclusive_access,
    holder,
    lock_file,
    write_lease,
)
from tests.fakes.stepping_clock import SteppingClock
from tests.graph_agent.storage.sqlite.looking import execute
from tests.graph_agent.storage.sqlite.process import start


@pytest.fixture
def lock(database: Database, clock: SteppingClock) -> FlockThreadLock:
    return FlockThreadLock(database, clock)


@pytest.fixture
def other_lock(database: Database, clock: SteppingClock) -> FlockThreadLock:
    return FlockThreadLock(database, clock)


async def test_a_thread_that_was_released_can_be_acquired_again(lock: FlockThreadLock) -> None:
    for _ in range(2):
        await lock.acquire("t", "run")
        await lock.release()
    await lock.release()


async def test_a_held_thread_is_refused_with_the_process_that_has_it(
    lock: FlockThreadLock, other_lock: FlockThreadLock
) -> None:
    await lock.acquire("t", "run")

    with pytest.raises(ThreadHeld, match=rf"'t' is open in another process \(pid {os.getpid()}\)\. Close it"):
        await other_lock.acquire("t", "another run")
    await other_lock.acquire("another", "run")

    await other_lock.release()
    await lock.release()


async def test_a_thread_whose_holder_is_about_to_release_it_is_waited_for(
    database: Database, clock: SteppingClock, lock: FlockThreadLock, other_lock: FlockThreadLock
) -> None:
    told: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    waiting = FlockThreadLock(database, clock, told.set_result)
    await lock.acquire("t", "run")
    lock.mark_ending()
    lock.mark_ending()

    acquiring = asyncio.create_task(waiting.acquire("t", "next run"))
    said = await told
    await lock.release()
    await acquiring

    assert f"a session that is ending (pid {os.getpid()})" in said
    with pytest.raises(ThreadHeld):  # The next holder is not ending.
        await other_lock.acquire("t", "another run")
    assert lock_file(database.path, "t").read_bytes() == b"known\n"
    await waiting.release()


async def test_a_holder_renews_its_lease_for_a_new_run_of_the_same_thread(
    database: Database, lock: FlockThreadLock
) -> None:
    await lock.acquire("t", "run")
    await lock.acquire("t", "next run")

    found = await database.run(lambda connection: holder(connection, "t"))

    assert found is not None
    assert (found.owner_token, found.is_alive) == ("next run", True)
    with pytest.raises(InternalError, match="holds thread 't' and cannot take 'another' as well"):
        await lock.acquire("another", "run")
    await lock.release()


async def test_another_process_keeps_the_thread_until_it_is_killed(
    database: Database, database_path: Path, lock: FlockThreadLock
) -> None:
    other = start("hold", database_path, "t")
    assert other.stdout is not None
    said = await asyncio.to_thread(other.stdout.readline)

    with pytest.raises(ThreadHeld, match=rf"open in another process \(pid {other.pid}\)"):
        await lock.acquire("t", "run")
    other.send_signal(signal.SIGKILL)
    await lock.acquire("t", "run")

    found = await database.run(lambda connection: holder(connection, "t"))
    other.communicate()
    assert said == f"held by {other.pid}\n"
    assert found is not None
    assert (found.pid, found.owner_token) == (os.getpid(), "run")
    await lock.release()


async def test_a_program_that_outlives_the_holder_does_not_hold_the_thread(
    database_path: Path, lock: FlockThreadLock
) -> None:
    other = start("hold_and_spawn", database_path, "t")
    orphan = int((await asyncio.to_thread(other.communicate))[0])
    os.kill(orphan, 0)

    await lock.acquire("t", "run")

    os.kill(orphan, signal.SIGKILL)
    await lock.release()


async def test_the_lock_file_is_private_safely_named_and_stays(database: Database, lock: FlockThreadLock) -> None:
    thread_id = "../../etc/passwd"
    await lock.acquire(thread_id, "run")
    await lock.release()

    path = lock_file(database.path, thread_id)

    assert path.parent == database.path.with_name("agent.db.locks")
    assert oct(path.stat().st_mode & 0o777) == "0o600"


async def test_a_lease_that_cannot_be_written_leaves_the_thread_free(
    database: Database, lock: FlockThreadLock, other_lock: FlockThreadLock
) -> None:
    await execute(database, "ALTER TABLE leases RENAME TO away")
    with pytest.raises(StorageError, match="no such table: leases"):
        await lock.acquire("t", "run")
    await execute(database, "ALTER TABLE away RENAME TO leases")

    await other_lock.acquire("t", "another run")

    await other_lock.release()


_HERE = Holder(os.getpid(), socket.gethostname(), "since", "run", is_alive=True)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("owner_token = owner_token", _HERE),
        ("boot_id = 'another boot'", replace(_HERE, is_alive=False)),
        ("process_started = '1'", replace(_HERE, is_alive=False)),
        ("process_started = ''", replace(_HERE, is_alive=False)),
        # A process on another host cannot be checked.
        ("host = 'elsewhere', boot_id = 'its boot', pid = 1", replace(_HERE, host="elsewhere", pid=1)),
    ],
)
async def test_a_lease_shows_who_holds_the_thread_and_whether_that_process_lives(
    database: Database, change: str, expected: Holder
) -> None:
    def read(connection: Connection) -> Holder | None:
        write_lease(connection, "t", "run", "since")
        connection.execute(f"UPDATE leases SET {change}")  # noqa: S608 - text from this file
        return holder(connection, "t")

    assert await database.run(lambda connection: holder(connection, "t")) is None
    assert await database.write(read) == expected


async def test_a_lease_is_ended_by_the_run_that_has_it(database: Database) -> None:
    def end(connection: Connection) -> list[Holder | None]:
        write_lease(connection, "t", "run", "since")
        end_lease(connection, "t", "another run", "at")
        still = holder(connection, "t")
        end_lease(connection, "t", "run", "at")
        return [still, holder(connection, "t")]

    assert await database.write(end) == [_HERE, None]


def test_exclusive_access_holds_every_lock_and_says_how_to_find_a_holder_without_a_lease(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    lock_dir(path).mkdir()
    lock = lock_file(path, "t")
    descriptor = os.open(lock, os.O_CREAT | os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)

    with pytest.raises(ThreadHeld, match=f"a process; find it with `fuser {lock}`"), exclusive_access(path):
        pass

    os.close(descriptor)
    with exclusive_access(path):
        held = os.open(lock, os.O_RDWR)
        with pytest.raises(BlockingIOError):
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(held)
