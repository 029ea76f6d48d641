"""Delete, prune and fork threads while other processes work on theirs."""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

from graph_agent.app.reader import read_database
from graph_agent.calls import FINAL
from graph_agent.config.paths import blob_dir
from graph_agent.errors import ThreadHeld, UsageError
from graph_agent.graph.run_context import new_owner_token
from graph_agent.inspect import ThreadSummary
from graph_agent.ports import Clock, SystemClock
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.background_shells import SqliteShells
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database, release_free_pages
from graph_agent.storage.sqlite.pruning import GarbageResult, collect_garbage
from graph_agent.storage.sqlite.thread_deletion import delete_threads
from graph_agent.storage.sqlite.thread_fork import Fork
from graph_agent.storage.sqlite.thread_lock import FlockThreadLock
from graph_agent.toolbox.background_shells import Shells

__all__ = ["Deleted", "Forked", "PruneOrder", "Pruned", "PrunedThread", "delete", "fork", "prune"]


@dataclass(frozen=True, slots=True)
class Deleted:
    """What went."""

    threads: tuple[ThreadSummary, ...] = ()
    """Empty when the person thought better of it."""
    collected: GarbageResult = field(default_factory=GarbageResult)
    """Blobs and spools that nothing named any more; what was written within the hour goes with a later prune."""


async def delete(
    database: Path, texts: Sequence[str], consents: Callable[[Sequence[ThreadSummary]], bool]
) -> Deleted:
    """Delete the threads that the texts name, with their sub-agents, in one transaction, once the person consents.

    Raises:
        UnknownId: nothing fits a text, or several ids do.
        NothingYet: there is no database.
        ThreadHeld: another process holds one of them; none is deleted.
    """
    threads = _named(database, texts)
    if not consents(threads):
        return Deleted()
    blobs = FileBlobs(blob_dir(database))
    async with await Database.open(database) as opened:
        async with AsyncExitStack() as held:
            for thread in threads:
                lock = FlockThreadLock(opened, SystemClock())
                await lock.acquire(thread.thread_id, new_owner_token())
                held.push_async_callback(lock.release)
            for thread in threads:
                await _end_shells(opened, blobs, thread.thread_id)
            await opened.write(lambda connection: delete_threads(connection, [t.thread_id for t in threads]))
            for thread in threads:
                blobs.drop_spools(thread.thread_id)
        collected = await opened.run(lambda connection: collect_garbage(connection, blobs))
        await opened.run(release_free_pages)
    return Deleted(threads, collected)


async def _end_shells(database: Database, blobs: FileBlobs, thread_id: str) -> None:
    """Once the thread is gone nobody would know of what goes on in the background."""
    await Shells(SqliteShells(database, SystemClock()), blobs, lambda _: None).reattach(thread_id)


def _named(database: Path, texts: Sequence[str]) -> tuple[ThreadSummary, ...]:
    if not all(text.strip() for text in texts):
        raise UsageError("an id is blank; name each thread to delete")
    with read_database(database) as reader:
        # Sorted: two that delete the same threads must not each hold one of them.
        ids = {reader.resolve(text, kinds=("thread",)).thread_id for text in texts}
        found = {thread.thread_id: thread for thread_id in ids for thread in reader.family(thread_id)}
        return tuple(found[thread_id] for thread_id in sorted(found))


@dataclass(frozen=True, slots=True)
class PruneOrder:
    """Which threads are pruned, and how far."""

    keep_turns: int
    text: str = ""
    """One thread with its sub-agents, or part of its id; empty: all of them."""
    older_than: timedelta | None = None
    """Only threads that nobody has worked on for so long."""
    max_bytes: int | None = None
    """Keep fewer turns, of the least recent threads first, until the database is no larger."""


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
    collected: GarbageResult
    """Blobs and spools that nothing named any more."""


async def prune(database: Path, order: PruneOrder) -> Pruned:
    """Prune what is ordered. A thread that another process holds is left alone and named.

    Raises:
        UnknownId: nothing fits the text, or several ids do.
        NothingYet: there is no database.
    """
    with read_database(database) as reader:
        named = reader.resolve(order.text, kinds=("thread", "checkpoint")).thread_id if order.text else None
        found = reader.threads() if named is None else reader.family(named)
        least_recent = list(reversed(found))
    chosen = [thread.thread_id for thread in least_recent if _is_old(thread, order.older_than)]
    async with await Database.open(database) as opened:
        before = _size(database)
        done = {thread_id: await _cut(opened, thread_id, order.keep_turns) for thread_id in chosen}
        await opened.run(release_free_pages)
        if order.max_bytes is not None:
            await _squeeze(opened, order, done)
        collected = await opened.run(lambda connection: collect_garbage(connection, FileBlobs(blob_dir(database))))
        await opened.run(release_free_pages)
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
            await database.run(release_free_pages)


async def _cut(database: Database, thread_id: str, keep_turns: int) -> PrunedThread:
    lock = FlockThreadLock(database, SystemClock())
    try:
        await lock.acquire(thread_id, new_owner_token())
    except ThreadHeld as held:
        return PrunedThread(thread_id, held_by=str(held))
    try:
        cut = await CheckpointSaver(database).prune_thread(thread_id, keep_turns)
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


@dataclass(frozen=True, slots=True)
class Forked:
    """The new thread and where it comes from."""

    thread_id: str
    parent_thread: str
    checkpoint_id: str
    turns: int
    open_calls: int
    """Calls that will be asked about, or run, when the new thread is taken up."""


async def fork(
    database: Path,
    text: str,
    *,
    thread_id: str | None = None,
    workspace: str | None = None,
    clock: Clock | None = None,
) -> Forked:
    """Fork at the checkpoint that the text names; of a thread at its newest one.

    Args:
        thread_id: id of the new thread; None gives it one of its own.
        workspace: where the newest thread is looked for when the text is empty.

    Raises:
        UnknownId: nothing fits the text, or several ids do.
        UsageError: the id is blank or a thread has it already, or the thread to fork has no checkpoint yet.
    """
    if thread_id is not None and not thread_id.strip():
        raise UsageError("--as needs an id that is not blank; leave it out to have one made")
    with read_database(database) as reader:
        target = reader.resolve(text, workspace, ("thread", "checkpoint"))
        head = reader.thread(target.thread_id).checkpoint_id
    checkpoint_id = target.id if target.kind == "checkpoint" else head
    if checkpoint_id is None:
        raise UsageError(f"thread {target.thread_id!r} has no checkpoint yet; there is nothing to fork")
    order = Fork(target.thread_id, checkpoint_id, thread_id or uuid4().hex, (clock or SystemClock()).now())
    async with await Database.open(database) as opened:
        await CheckpointSaver(opened).fork(order)
    with read_database(database) as reader:
        made = reader.inspection(order.target)
        turns = reader.thread(order.target).turns
    still_open = sum(view.record["status"] not in FINAL for view in made.calls)
    return Forked(order.target, order.source, checkpoint_id, turns, still_open)
