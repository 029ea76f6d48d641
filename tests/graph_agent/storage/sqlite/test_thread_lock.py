import asyncio
import os
import signal
from pathlib import Path

import pytest

from graph_agent.errors import InternalError, StorageError, ThreadHeld
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.thread_lock import FlockThreadLock, holder, lock_file
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

    async def test_a_held_thread_is_refused_with_who_has_it_and_since_when(
        self, database: Database, lock: FlockThreadLock, clock: SteppingClock
    ) -> None:
        await lock.acquire("t", "life")

        with pytest.raises(
            ThreadHeld, match=rf"'t' is held by process {os.getpid()} on \S+ since 2026-01-01T00:00:00\.000Z"
        ):
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

    with pytest.raises(ThreadHeld, match=f"held by process {other.pid} on"):
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
