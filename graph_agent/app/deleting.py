"""Deletes threads whole, or not at all, while other processes work on theirs. Runs no thread."""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from graph_agent.config.paths import blob_dir
from graph_agent.errors import UsageError
from graph_agent.graph.life import new_token
from graph_agent.inspect import Reader, ThreadSummary
from graph_agent.ports import SystemClock
from graph_agent.store.blobs import FileBlobs
from graph_agent.store.collecting import Collected, collect
from graph_agent.store.database import Database, give_back
from graph_agent.store.deleting import delete_threads
from graph_agent.store.lock import FlockThreadLock
from graph_agent.store.shells import SqliteShells
from graph_agent.toolbox.shells import Shells

__all__ = ["Deleted", "delete"]


@dataclass(frozen=True, slots=True)
class Deleted:
    """What went."""

    threads: tuple[ThreadSummary, ...] = ()
    """Empty when the person thought better of it."""
    collected: Collected = field(default_factory=Collected)
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
                await lock.acquire(thread.thread_id, new_token())
                held.push_async_callback(lock.release)
            for thread in threads:
                await _end_shells(opened, blobs, thread.thread_id)
            await opened.write(lambda connection: delete_threads(connection, [t.thread_id for t in threads]))
            for thread in threads:
                blobs.drop_spools(thread.thread_id)
        collected = await opened.run(lambda connection: collect(connection, blobs))
        await opened.run(give_back)
    return Deleted(threads, collected)


async def _end_shells(database: Database, blobs: FileBlobs, thread_id: str) -> None:
    """Once the thread is gone nobody would know of what goes on in the background."""
    await Shells(SqliteShells(database, SystemClock()), blobs, lambda _: None).take_up(thread_id)


def _named(database: Path, texts: Sequence[str]) -> tuple[ThreadSummary, ...]:
    if not all(text.strip() for text in texts):
        raise UsageError("an id is blank; name each thread to delete")
    with Reader.open(database) as reader:
        # Sorted: two that delete the same threads must not each hold one of them.
        ids = {reader.resolve(text, kinds=("thread",)).thread_id for text in texts}
        found = {thread.thread_id: thread for thread_id in ids for thread in reader.family(thread_id)}
        return tuple(found[thread_id] for thread_id in sorted(found))
