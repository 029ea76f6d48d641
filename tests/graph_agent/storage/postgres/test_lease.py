import asyncio
import json
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from graph_agent.config.paths import ServerPath
from graph_agent.errors import InternalError, LeaseLost, ThreadHeld
from graph_agent.ports import Answer, Outcome, Question, Rewind, SystemClock
from graph_agent.storage import open_read_store
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.postgres.database import PostgresDatabase
from graph_agent.storage.postgres.lease import LENGTH_S, PostgresThreadLock
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.decisions import SqliteDecisions
from graph_agent.storage.sqlite.journal import SqliteJournal
from graph_agent.storage.sqlite.projections import delete_threads
from graph_agent.storage.sqlite.rewinds import SqliteRewinds
from graph_agent.storage.sqlite.threads import SqliteFileStates, SqliteInbox
from tests.fakes.postgres_server import PostgresServer
from tests.graph_agent.storage.sqlite.looking import rows
from tests.graph_agent.storage.sqlite.small_graph import config_of

pytestmark = pytest.mark.slow

SHORT_S = 1.5
Work = Callable[[PostgresDatabase, "Report"], Awaitable[Any]]


@pytest.fixture
def path(postgres: PostgresServer, postgres_template: str, tmp_path: Path) -> Iterator[ServerPath]:
    url = postgres.create_database(postgres_template)
    yield ServerPath.from_url(url, tmp_path / "servers")
    postgres.drop_database(url)


@dataclass(frozen=True)
class Report:
    """What a process says to the test, a line of JSON each."""

    descriptor: int

    def say(self, what: Any) -> None:
        os.write(self.descriptor, (json.dumps(what) + "\n").encode())


class Process:
    """A process that works on the database, as one on a host of this name where one is given."""

    def __init__(self, path: ServerPath, work: Work, length_s: float = SHORT_S, host: str = "") -> None:
        source, target = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(source)
            try:
                if host:
                    socket.gethostname = lambda: host
                asyncio.run(self._run(path, work, length_s, Report(target)))
            except BaseException:  # noqa: BLE001 - a forked child must not return into the test runner
                traceback.print_exc(file=sys.__stderr__)
            finally:
                os._exit(0)
        os.close(target)
        self._lines = os.fdopen(source)

    @staticmethod
    async def _run(path: ServerPath, work: Work, length_s: float, report: Report) -> None:
        async with await PostgresDatabase.open(path) as database:
            database.leases.length_s = length_s
            await work(database, report)

    def hear(self) -> Any:
        """What it says next; None once it has ended."""
        line = self._lines.readline()
        return json.loads(line) if line else None

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self._lines.close()


@contextmanager
def process(path: ServerPath, work: Work, length_s: float = SHORT_S, host: str = "") -> Iterator[Process]:
    started = Process(path, work, length_s, host)
    try:
        yield started
    finally:
        started.end()


def look(path: ServerPath, work: Callable[[PostgresDatabase], Awaitable[Any]], length_s: float = SHORT_S) -> Any:
    """What another process finds or does."""

    async def run() -> Any:
        async with await PostgresDatabase.open(path) as database:
            database.leases.length_s = length_s
            return await work(database)

    return asyncio.run(run())


async def _take(database: PostgresDatabase) -> float:
    """Take the thread as soon as it can be had; after how many seconds that was."""
    began = time.monotonic()
    while True:
        with suppress(ThreadHeld):
            await PostgresThreadLock(database, SystemClock()).acquire("t", "taker")
            return time.monotonic() - began
        await asyncio.sleep(0.05)


async def _hold(database: PostgresDatabase, report: Report) -> None:
    await PostgresThreadLock(database, SystemClock()).acquire("t", "holder")
    report.say("held")
    await asyncio.sleep(60)


def test_of_processes_that_race_for_a_thread_one_gets_it_and_the_others_hear_who(path: ServerPath) -> None:
    async def race(database: PostgresDatabase, report: Report) -> None:
        try:
            await PostgresThreadLock(database, SystemClock()).acquire("t", f"run of {os.getpid()}")
        except ThreadHeld as held:
            report.say(str(held))
        else:
            report.say("")
        await asyncio.sleep(60)

    racers = [Process(path, race) for _ in range(8)]
    said = [racer.hear() for racer in racers]
    [winner] = [racer.pid for racer, text in zip(racers, said, strict=True) if not text]
    for racer in racers:
        racer.end()

    text = f"Thread 't' is open in another process (pid {winner}). Close it, or use `graph-agent approvals`."
    assert sorted(said) == ["", *[text] * 7]


def test_a_killed_process_of_this_host_is_not_waited_for(path: ServerPath) -> None:
    with process(path, _hold, LENGTH_S) as holder:
        assert holder.hear() == "held"

    assert look(path, _take, LENGTH_S) < 2


@pytest.mark.parametrize("length_s", [SHORT_S, LENGTH_S])
def test_the_thread_of_a_process_killed_on_another_host_is_taken_over_in_time(
    path: ServerPath, length_s: float
) -> None:
    with process(path, _hold, length_s, host="elsewhere") as holder:
        assert holder.hear() == "held"

    with pytest.raises(ThreadHeld, match=rf"pid {holder.pid} on elsewhere\).*free 12 seconds later"):
        look(path, lambda database: PostgresThreadLock(database, SystemClock()).acquire("t", "taker"))
    assert length_s - 1 < look(path, _take, length_s) < length_s + 3


def test_a_thread_whose_lease_ended_is_shown_as_free(path: ServerPath) -> None:
    def holders(_: PostgresDatabase) -> Awaitable[list[Any]]:
        with closing(open_read_store(path)) as store:
            return asyncio.sleep(0, [lease.ended_at for lease in store.leases().values()])

    with process(path, _hold, host="elsewhere") as holder:
        assert holder.hear() == "held"
        held = look(path, holders)
    time.sleep(SHORT_S + 0.5)

    assert (held, [ended is None for ended in look(path, holders)]) == ([None], [False])


def test_renewals_keep_a_thread_that_is_held_for_long(path: ServerPath) -> None:
    with process(path, _hold, host="elsewhere") as holder:
        assert holder.hear() == "held"
        refused = 0
        until = time.monotonic() + 3 * SHORT_S
        while time.monotonic() < until:
            with pytest.raises(ThreadHeld):
                look(path, lambda database: PostgresThreadLock(database, SystemClock()).acquire("t", "taker"))
            refused += 1

    assert refused > 3


_ASKED = Question("approval", "c1", 1, "digest")
_AT = "2026-01-01T00:00:00.000Z"
_EMPTY: dict[str, Any] = {"channel_values": {}, "channel_versions": {}, "versions_seen": {}}


def _writes(database: PostgresDatabase, blobs: FileBlobs) -> dict[str, Callable[[], Awaitable[Any]]]:
    """Everything that a run writes about its thread."""
    clock = SystemClock()
    journal, decisions = SqliteJournal(database, blobs, clock), SqliteDecisions(database)
    saver, inbox = CheckpointSaver(database), SqliteInbox(database, clock)
    checkpoint: Any = {"v": 4, "id": "2", "ts": _AT, **_EMPTY}
    here: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "1"}}
    return {
        "a claim": lambda: journal.claim("t", "c2", 1, "holder", None),
        "a process": lambda: journal.record_process("t", "c1", 1, 4711, "99"),
        "an outcome": lambda: journal.finish("t", "c1", 1, "holder", Outcome("success", "late")),
        "an interruption": lambda: journal.record_interruption("t", "c1", 1, "holder", "interrupted"),
        "a checkpoint": lambda: saver.aput(here, checkpoint, {}, {}),
        "writes": lambda: saver.aput_writes(here, [("a", "late")], "task"),
        "an answer": lambda: decisions.insert("t", _ASKED, Answer("approve", "late", _AT)),
        "that answers were applied": lambda: decisions.mark_applied("t", [_ASKED], _AT),
        "that answers no longer count": lambda: decisions.supersede("t", ["c1"], _AT),
        "a message": lambda: inbox.queue("t", "late", "late"),
        "a file's state": lambda: SqliteFileStates(database, clock).set("t", "/late", "late"),
        "a rewind": lambda: SqliteRewinds(database, clock).plan(Rewind("t", "1", "2", "both")),
        "a sub-agent's claim": lambda: journal.claim("child of t", "c9", 1, "holder", None),
    }


_TABLES = (
    "journal",
    "checkpoints",
    "writes",
    "decisions",
    "inbox",
    "file_states",
    "rewinds",
    "threads",
    "call_log",
)


async def _content(database: PostgresDatabase) -> dict[str, list[Any]]:
    return {table: await rows(database, f"SELECT * FROM {table}") for table in _TABLES}  # noqa: S608 - names from here


@pytest.mark.parametrize("has_clock", [True, False], ids=["by its own clock", "by the row alone"])
def test_a_process_that_stood_still_for_longer_than_its_lease_writes_nothing_more(
    path: ServerPath, tmp_path: Path, has_clock: bool
) -> None:
    blobs = FileBlobs(tmp_path / "blobs")

    async def work(database: PostgresDatabase, report: Report) -> None:
        lost = asyncio.Event()
        lock = PostgresThreadLock(database, SystemClock())
        await lock.acquire("t", "holder", lost.set)
        await SqliteJournal(database, blobs, SystemClock()).claim("t", "c1", 1, "holder", None)
        await CheckpointSaver(database).aput(config_of("t"), {"v": 4, "id": "1", "ts": _AT, **_EMPTY}, {}, {})  # type: ignore[typeddict-item]  # a plain one
        if not has_clock:
            database.leases.close()  # Neither renewed nor watched from here on.
            assert lock._lease is not None
            lock._lease.ends_at = float("inf")
        report.say("held")
        os.kill(os.getpid(), signal.SIGSTOP)
        for name, write in _writes(database, blobs).items():
            try:
                await write()
            except LeaseLost:
                continue
            report.say(f"{name} was written")
        await asyncio.wait_for(lost.wait(), 5)
        await lock.release()
        report.say("the loss was noticed")

    with process(path, work) as zombie:
        assert zombie.hear() == "held"
        look(path, _take)
        before = look(path, _content)
        os.kill(zombie.pid, signal.SIGCONT)
        said = [zombie.hear()]
        after = look(path, _content)

    assert said == ["the loss was noticed"]
    assert after == before
    assert look(path, lambda one: rows(one, "SELECT owner_token FROM leases")) == [("taker",)]


def test_every_write_is_possible_while_the_thread_is_held(path: ServerPath, tmp_path: Path) -> None:
    async def work(database: PostgresDatabase) -> None:
        lock = PostgresThreadLock(database, SystemClock())
        await lock.acquire("t", "holder")
        await SqliteJournal(database, FileBlobs(tmp_path), SystemClock()).claim("t", "c1", 1, "holder", None)
        for write in _writes(database, FileBlobs(tmp_path)).values():
            await write()
        await lock.release()

    look(path, work)

    written = {table: len(found) for table, found in look(path, _content).items() if found}
    assert written.keys() >= {"journal", "checkpoints", "writes", "decisions", "inbox", "file_states", "rewinds"}


def test_a_taker_waits_for_a_write_that_is_under_way(path: ServerPath) -> None:
    async def work(database: PostgresDatabase, report: Report) -> None:
        lock = PostgresThreadLock(database, SystemClock())
        await lock.acquire("t", "holder")
        database.leases.close()

        def write(connection: Any) -> None:
            connection.execute(
                "INSERT INTO inbox (thread_id, text, queued_by, queued_at) VALUES ('t', 'in time', '', '')"
            )
            report.say("writing")
            time.sleep(1.5 * SHORT_S)  # Longer than a lease, shorter than a server waits for its client.

        await database.write(write, thread_id="t")
        await asyncio.sleep(60)

    async def take(database: PostgresDatabase) -> list[Any]:
        await _take(database)
        return await rows(database, "SELECT text FROM inbox")

    with process(path, work) as writer:
        assert writer.hear() == "writing"
        assert look(path, take) == [("in time",)]


def test_a_thread_stays_held_while_the_server_restarts(path: ServerPath, postgres: PostgresServer) -> None:
    async def work(database: PostgresDatabase, report: Report) -> None:
        await PostgresThreadLock(database, SystemClock()).acquire("t", "holder")
        inbox = SqliteInbox(database, SystemClock())
        report.say(await inbox.queue("t", "before", "me"))
        while not Path(path).with_name("restarted").exists():  # noqa: ASYNC110 - a file has no event to wait for
            await asyncio.sleep(0.05)
        await rows(database, "SELECT 1")
        report.say(await inbox.queue("t", "after", "me"))
        await asyncio.sleep(60)

    # Starting again takes the server several seconds on a busy machine.
    with process(path, work, 5 * LENGTH_S) as holder:
        first = holder.hear()
        postgres.restart("immediate")
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).with_name("restarted").touch()
        second = holder.hear()
        with pytest.raises(ThreadHeld, match=f"pid {holder.pid}"):
            look(path, lambda database: PostgresThreadLock(database, SystemClock()).acquire("t", "taker"))

    assert second > first


def test_a_thread_that_is_deleted_takes_its_lease_along_and_other_writes_go_on(path: ServerPath) -> None:
    async def work(database: PostgresDatabase) -> list[Any]:
        locks = [PostgresThreadLock(database, SystemClock()) for _ in range(2)]
        for lock, thread_id in zip(locks, ("gone", "kept"), strict=True):
            await lock.acquire(thread_id, "holder")
        locks[0].mark_deleted()
        await database.write(lambda connection: delete_threads(connection, ["gone"]))
        await SqliteInbox(database, SystemClock()).queue("kept", "still", "me")
        for lock in locks:
            await lock.release()
        return await rows(database, "SELECT thread_id, ended_at IS NULL FROM leases")

    assert look(path, work) == [("kept", 0)]


def test_a_lock_holds_one_thread_renews_it_with_a_new_token_and_can_be_released_twice(path: ServerPath) -> None:
    async def work(database: PostgresDatabase) -> list[Any]:
        lock = PostgresThreadLock(database, SystemClock())
        await lock.acquire("t", "first run")
        await lock.acquire("t", "next run")
        with pytest.raises(InternalError, match="holds thread 't' and cannot take 'other' as well"):
            await lock.acquire("other", "run")
        found = await rows(database, "SELECT owner_token FROM leases")
        await SqliteInbox(database, SystemClock()).queue("t", "still", "me")
        await lock.release()
        await lock.release()
        await PostgresThreadLock(database, SystemClock()).acquire("t", "later run")
        return found

    assert look(path, work) == [("next run",)]
