"""Prunes threads and collects what nothing names any more, while other processes work on theirs. Runs no thread."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from graph_agent.config.paths import blob_dir
from graph_agent.errors import ThreadHeld, UsageError
from graph_agent.graph.life import new_token
from graph_agent.inspect import Reader, ThreadSummary
from graph_agent.ports import SystemClock
from graph_agent.store.blobs import FileBlobs
from graph_agent.store.collecting import Collected, collect
from graph_agent.store.database import Database, give_back
from graph_agent.store.lock import FlockThreadLock
from graph_agent.store.saver import CheckpointSaver

__all__ = ["PruneOrder", "Pruned", "PrunedThread", "prune"]


@dataclass(frozen=True, slots=True)
class PruneOrder:
    """Which threads are pruned, and how far."""

    keep_turns: int
    text: str = ""
    """One thread with its sub-agents, or part of its id; empty: all of them."""
    older_than: timedelta | None = None
    """Only threads that nobody has worked on for so long."""
    max_bytes: int | None = None
    """Keep fewer turns, of the threads that rest longest first, until the database is no bigger."""


@dataclass(frozen=True, slots=True)
class PrunedThread:
    """What became of one thread."""

    thread_id: str
    checkpoints: int = 0
    """How many went."""
    snapshots: int = 0
    held_by: str = ""
    """Why it was left alone."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """What became of all."""

    bytes_before: int
    bytes_after: int
    threads: tuple[PrunedThread, ...]
    collected: Collected
    """Blobs and spools that nothing named any more."""


async def prune(database: Path, order: PruneOrder) -> Pruned:
    """Prune what is ordered. A thread that another process holds is left alone and named.

    Raises:
        UnknownId: nothing fits the text, or several ids do.
        NothingYet: there is no database.
    """
    with Reader.open(database) as reader:
        named = reader.resolve(order.text, kinds=("thread", "checkpoint")).thread_id if order.text else None
        found = reader.threads() if named is None else reader.family(named)
        resting = list(reversed(found))
    chosen = [thread.thread_id for thread in resting if _is_old(thread, order.older_than)]
    async with await Database.open(database) as opened:
        before = _size(database)
        done = {thread_id: await _cut(opened, thread_id, order.keep_turns) for thread_id in chosen}
        await opened.run(give_back)
        if order.max_bytes is not None:
            await _squeeze(opened, order, done)
        collected = await opened.run(lambda connection: collect(connection, FileBlobs(blob_dir(database))))
        await opened.run(give_back)
        after = _size(database)
    return Pruned(before, after, tuple(done.values()), collected)


async def _squeeze(database: Database, order: PruneOrder, done: dict[str, PrunedThread]) -> None:
    keep_turns = order.keep_turns
    while keep_turns > 1:
        keep_turns //= 2
        for thread_id, so_far in tuple(done.items()):
            if _size(database.path) <= (order.max_bytes or 0):
                return
            done[thread_id] = _sum(so_far, await _cut(database, thread_id, keep_turns))
            await database.run(give_back)


async def _cut(database: Database, thread_id: str, keep_turns: int) -> PrunedThread:
    lock = FlockThreadLock(database, SystemClock())
    try:
        await lock.acquire(thread_id, new_token())
    except ThreadHeld as held:
        return PrunedThread(thread_id, held_by=str(held))
    try:
        cut = await CheckpointSaver(database).cut(thread_id, keep_turns)
    finally:
        await lock.release()
    return PrunedThread(thread_id, cut.checkpoints, cut.snapshots)


def _sum(first: PrunedThread, then: PrunedThread) -> PrunedThread:
    return PrunedThread(
        first.thread_id,
        first.checkpoints + then.checkpoints,
        first.snapshots + then.snapshots,
        then.held_by,
    )


def _is_old(thread: ThreadSummary, age: timedelta | None) -> bool:
    if age is None:
        return True
    try:
        return datetime.fromisoformat(thread.updated_at) < datetime.now(UTC) - age
    except ValueError as error:
        raise UsageError(f"thread {thread.thread_id!r} has no readable time: {thread.updated_at!r}") from error


def _size(database: Path) -> int:
    """Bytes of the database with its log."""
    parts = (database, database.with_name(f"{database.name}-wal"))
    return sum(path.stat().st_size for path in parts if path.exists())
