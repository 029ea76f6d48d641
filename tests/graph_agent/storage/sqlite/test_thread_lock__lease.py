import os
import socket
import sqlite3
from dataclasses import replace

import pytest

from graph_agent.ports import Holder
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.thread_lock import end_lease, holder, write_lease

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
