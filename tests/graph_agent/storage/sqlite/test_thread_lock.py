import asyncio
import fcntl
import os
import signal
import socket
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from graph_agent.config.paths import lock_dir
from graph_agent.errors import InternalError, StorageError, ThreadHeld
from graph_agent.ports import Holder
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
from tests.graph_agent.storage.sqlite.life import start


@pytest.fixture
def lock(database: Database, clock: SteppingClock) -> FlockThreadLock:
    return FlockThreadLock(database, clock)


class TestThreadLock:
    async def test_a_thread_let_go_can_be_taken_again(self, lock: FlockThreadLock) -> None:
        await lock.acquire("t", "life")
        await lock.release()

        await lock.acquire("t", "life")
        await lock.release()
        await lock.release()

    async def test_a_held_thread_is_refused_with_who_has_it(
        self, database: Database, lock: FlockThreadLock, clock: SteppingClock
    ) -> None:
        await lock.acquire("t", "life")

        with pytest.raises(ThreadHeld, match=rf"'t' is open in another process \(pid {os.getpid()}\)\. Close it"):
            await FlockThreadLock(database, clock).acquire("t", "another life")

        await lock.release()

    async def test_threads_are_locked_one_by_one(
        self, database: Database, lock: FlockThreadLock, clock: SteppingClock
    ) -> None:
        other = FlockThreadLock(database, clock)

        await lock.acquire("t", "life")
        await other.acquire("another", "life")

        await other.release()
        await lock.release()

    async def test_a_holder_renews_its_lease_for_a_new_life(
        self, database: Database, lock: FlockThreadLock
    ) -> None:
        await lock.acquire("t", "life")
        await lock.acquire("t", "next life")

        found = await database.run(lambda connection: holder(connection, "t"))

        assert found is not None
        assert (found.owner_token, found.is_alive) == ("next life", True)
        await lock.release()

    async def test_one_lock_does_not_hold_two_threads(self, lock: FlockThreadLock) -> None:
        await lock.acquire("t", "life")

        with pytest.raises(InternalError, match="holds thread 't' and cannot take 'another' as well"):
            await lock.acquire("another", "life")

        await lock.release()


async def test_another_process_keeps_the_thread_until_it_is_killed(
    database: Database, database_path: Path, lock: FlockThreadLock
) -> None:
    other = start("hold", database_path, "t")
    assert other.stdout is not None
    said = await asyncio.to_thread(other.stdout.readline)

    with pytest.raises(ThreadHeld, match=rf"open in another process \(pid {other.pid}\)"):
        await lock.acquire("t", "life")
    other.send_signal(signal.SIGKILL)
    await lock.acquire("t", "life")

    found = await database.run(lambda connection: holder(connection, "t"))
    other.communicate()
    assert said == f"held by {other.pid}\n"
    assert found is not None
    assert (found.pid, found.owner_token) == (os.getpid(), "life")
    await lock.release()


async def test_a_program_that_outlives_the_holder_does_not_hold_the_thread(
    database_path: Path, lock: FlockThreadLock
) -> None:
    other = start("hold_and_spawn", database_path, "t")
    said = (await asyncio.to_thread(other.communicate))[0]
    orphan = int(said)
    os.kill(orphan, 0)

    await lock.acquire("t", "life")

    os.kill(orphan, signal.SIGKILL)
    await lock.release()


async def test_the_lock_file_is_private_safely_named_and_stays(database: Database, lock: FlockThreadLock) -> None:
    thread_id = "../../etc/passwd"
    await lock.acquire(thread_id, "life")
    await lock.release()

    path = lock_file(database.path, thread_id)

    assert path.parent == database.path.with_name("agent.db.locks")
    assert oct(path.stat().st_mode & 0o777) == "0o600"


async def test_a_lease_that_cannot_be_written_leaves_the_thread_free(
    database: Database, clock: SteppingClock, lock: FlockThreadLock
) -> None:
    await database.write(lambda connection: connection.execute("ALTER TABLE leases RENAME TO away"))
    with pytest.raises(StorageError, match="no such table: leases"):
        await lock.acquire("t", "life")
    await database.write(lambda connection: connection.execute("ALTER TABLE away RENAME TO leases"))

    other = FlockThreadLock(database, clock)
    await other.acquire("t", "another life")

    await other.release()


_HERE = Holder(os.getpid(), socket.gethostname(), "since", "life", is_alive=True)


async def _after(database: Database, change: str) -> Holder | None:
    def look(connection: sqlite3.Connection) -> Holder | None:
        write_lease(connection, "t", "life", "since")
        connection.execute(f"UPDATE leases SET {change}")  # noqa: S608 - text from this file
        return holder(connection, "t")

    return await database.write(look)


async def test_a_thread_never_held_has_no_holder(database: Database) -> None:
    assert await database.run(lambda connection: holder(connection, "t")) is None


async def test_the_holder_is_told_with_pid_host_time_and_life(database: Database) -> None:
    assert await _after(database, "owner_token = owner_token") == _HERE


@pytest.mark.parametrize("change", ["boot_id = 'another boot'", "process_started = '1'", "process_started = ''"])
async def test_a_holder_of_another_boot_or_start_time_is_dead_though_the_pid_runs(
    database: Database, change: str
) -> None:
    assert await _after(database, change) == replace(_HERE, is_alive=False)


async def test_a_holder_on_another_host_counts_as_alive(database: Database) -> None:
    found = await _after(database, "host = 'elsewhere', boot_id = 'its boot', pid = 1")

    assert found == Holder(1, "elsewhere", "since", "life", is_alive=True)


async def test_a_lease_is_ended_by_the_life_that_has_it(database: Database) -> None:
    def end(connection: sqlite3.Connection) -> list[Holder | None]:
        write_lease(connection, "t", "life", "since")
        end_lease(connection, "t", "another life", "at")
        still = holder(connection, "t")
        end_lease(connection, "t", "life", "at")
        return [still, holder(connection, "t")]

    assert await database.write(end) == [_HERE, None]


def test_a_lock_without_a_lease_is_told_with_how_to_find_its_process(tmp_path: Path) -> None:
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
