"""Rename, export, delete, prune and fork threads while other processes work on theirs.

What loads the model library or the settings is imported only by the functions that use it.
"""

import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from graph_agent.app.reader import read_database
from graph_agent.calls import FINAL
from graph_agent.errors import ThreadHeld, UsageError
from graph_agent.graph.run_context import new_owner_token
from graph_agent.inspect import ThreadSummary
from graph_agent.inspect.calls import is_alive
from graph_agent.ports import Clock, SystemClock
from graph_agent.storage import open_blobs, open_database, refuse_server, thread_lock
from graph_agent.storage.sqlite.database import Database, release_free_pages
from graph_agent.storage.sqlite.journal import SqliteShells
from graph_agent.storage.sqlite.pruning import GarbageResult, collect_garbage
from graph_agent.storage.sqlite.threads import SqliteInbox, ThreadTable

if TYPE_CHECKING:
    from graph_agent.ports.read_store import Lease
    from graph_agent.session.session import Session
    from graph_agent.session.turn_result import TurnResult
    from graph_agent.storage.sqlite.checkpointer import CheckpointSaver

__all__ = [
    "Deleted",
    "Forked",
    "PruneOrder",
    "Pruned",
    "PrunedThread",
    "cancel_running_task",
    "choose_mode",
    "choose_model",
    "delete",
    "fork",
    "interrupt_holder",
    "open_export",
    "prune",
    "rename",
    "run_until_question",
    "say",
]


async def run_until_question(
    session: "Session", is_stopping: Callable[[], bool], *, is_retry: bool = False
) -> "TurnResult":
    """Continue a thread that was just opened until it is idle and no message waits, or a person is needed.

    Args:
        is_stopping: whether nothing new is to begin; asked between turns.
        is_retry: also continue a turn that reached a limit or was stopped.
    """
    result = await session.start()
    if result.status == "resumable" or (is_retry and not result.questions):
        result = await session.continue_turn()
    while not is_stopping():
        if result.status in ("awaiting_approval", "interrupted"):
            # There are no questions if the last answer came while they were gathered.
            answered = await session.recorded_answers()
            if {item.question.call_id for item in result.questions} - answered.keys():
                break
            seen, result = result, await session.proceed()
            if not result.questions and (result.status, result.checkpoint_id) == (seen.status, seen.checkpoint_id):
                break  # Nothing changed, so trying again would not help.
        elif result.status in ("done", "stopped", "limit"):
            sent = await session.send_queued()
            if sent is None:
                break
            result = sent
        else:
            break
    return result


async def rename(database: Path, text: str, title: str) -> tuple[str, str]:
    """Rename the thread that the text names; returns its whole id and its title now, which is one line.

    Raises:
        UnknownId: no id matches the text, or several do.
        UsageError: the title is blank.
    """
    line = " ".join(title.split())
    if not line:
        raise UsageError("The title is blank. Give one or more words.")
    with read_database(database) as reader:
        thread_id = reader.resolve(text, kinds=("thread", "checkpoint")).thread_id
    async with await open_database(database) as opened:
        await ThreadTable(opened, SystemClock()).set_title(thread_id, line)
    with read_database(database) as reader:
        return thread_id, reader.thread(thread_id).title


async def say(database: Path, text: str, message: str) -> str:
    """Queue a message for the thread that the text names; returns its whole id.

    A turn that runs in another process gets it with its next model request, otherwise the next turn begins with it.

    Raises:
        UnknownId: no id matches the text, or several do.
        UsageError: the message is blank.
    """
    if not message.strip():
        raise UsageError("The message is blank. Give one or more words.")
    with read_database(database) as reader:
        thread_id = reader.resolve(text, kinds=("thread", "checkpoint")).thread_id
    async with await open_database(database) as opened:
        await SqliteInbox(opened, SystemClock()).queue(thread_id, message, f"pid {os.getpid()}", is_urgent=True)
    return thread_id


async def choose_mode(database: Path, text: str, mode: str) -> str:
    """Store the permission mode that the thread has from now on; returns its whole id.

    Raises:
        UnknownId: no id matches the text, or several do.
        UsageError: there is no such mode, or it can only be chosen at the start.
        ThreadHeld: another process holds the thread, and has a mode of its own.
    """
    from graph_agent.session.session import require_selectable_mode  # noqa: PLC0415 - see above

    require_selectable_mode(mode)
    async with _held_alone(database, text) as (thread, table):
        await table.set_mode(thread.thread_id, mode)
    return thread.thread_id


async def choose_model(database: Path, text: str, name: str) -> str:
    """Store the model that answers in the thread from now on, a profile or a model of the endpoint; its label.

    Raises:
        UnknownId: no id matches the text, or several do.
        UsageError: no model can be chosen by this name.
        ThreadHeld: another process holds the thread, and has a model of its own.
    """
    from graph_agent.app.models import open_model, store_model_choice  # noqa: PLC0415 - see above
    from graph_agent.app.project_trust import settings_at  # noqa: PLC0415 - see above
    from graph_agent.config.sources import with_model  # noqa: PLC0415 - see above

    if not name.strip():
        raise UsageError("The model is blank. Give the name of a profile or of a model.")
    async with _held_alone(database, text) as (thread, table):
        settings = settings_at(Path(thread.workspace), {"database": database})
        model = await open_model(with_model(settings, name.strip()), may_choose_later=True)
        try:
            await store_model_choice(model, table, thread.thread_id)
            return model.label
        finally:
            await model.close()


@asynccontextmanager
async def _held_alone(database: Path, text: str) -> AsyncIterator[tuple[ThreadSummary, ThreadTable]]:
    """The thread that the text names, while no other process can open it."""
    with read_database(database) as reader:
        thread = reader.thread(reader.resolve(text, kinds=("thread", "checkpoint")).thread_id)
    async with await open_database(database) as opened:
        lock = thread_lock(opened, SystemClock())
        await lock.acquire(thread.thread_id, new_owner_token())
        try:
            yield thread, ThreadTable(opened, SystemClock())
        finally:
            await lock.release()


def interrupt_holder(database: Path, text: str) -> int:
    """Send the signal of Ctrl-C to the process that holds the thread; returns its pid.

    A chat or run stops its turn. Only the very process that took the thread gets the signal: a lease that was left
    by another start of the machine, or whose pid belongs to another process by now, is no holder.

    Raises:
        UnknownId: no id matches the text, or several do.
        UsageError: no process of this machine holds the thread.
    """
    with read_database(database) as reader:
        own = reader.top_thread(reader.resolve(text, kinds=("thread", "checkpoint")).thread_id)
        holder = reader.thread(own).holder
    if holder is not None and holder.host != socket.gethostname():
        raise UsageError(
            f"Thread {own} is open on another machine, {holder.host} (pid {holder.pid}). Stop its turn there."
        )
    if holder is None or not _interrupt(holder):
        raise UsageError(f"No process has thread {own} open, so nothing of it runs.")
    return holder.pid


async def cancel_running_task(database: Path, thread_id: str, holder: "Lease | None") -> str:
    """Cancel the task that a worker, on whatever host, runs in the thread; returns its id, empty if there is none.

    The worker then stops the turn. The signal of Ctrl-C would end the whole worker, with its other tasks.

    Raises:
        StorageError: the database cannot be used.
    """
    from graph_agent.storage.sqlite.tasks import TaskTable, read_tasks, read_workers  # noqa: PLC0415 - see above

    if holder is None:
        return ""
    workers = {(one.lease.host, one.lease.pid, one.lease.process_started) for one in read_workers(database)}
    if (holder.host, holder.pid, holder.process_started) not in workers:
        return ""
    for task in read_tasks(database):
        if task.thread_id == thread_id and task.state == "started":
            async with await open_database(database) as opened:
                return task.task_id if await TaskTable(opened, SystemClock()).cancel(task.task_id) else ""
    return ""


def _interrupt(holder: "Lease") -> bool:
    """Signal a process of this machine; False if it has ended.

    Raises:
        UsageError: it is another user's.
    """
    try:
        # Its descriptor keeps the pid from being given to another process; macOS has none, and reuses pids slowly.
        pinned = os.pidfd_open(holder.pid) if sys.platform == "linux" else None
    except ProcessLookupError:
        return False
    try:
        if not is_alive(holder):
            return False
        os.kill(holder.pid, signal.SIGINT)
    except ProcessLookupError:
        return False
    except PermissionError as error:
        raise UsageError(f"Process {holder.pid} belongs to another user. Stop its turn there.") from error
    finally:
        if pinned is not None:
            os.close(pinned)
    return True


@contextmanager
def open_export(database: Path, text: str, here: str | None) -> Iterator[Iterator[str]]:
    """The lines of the file about the thread that the text names, with known secrets redacted.

    Raises:
        UnknownId: no id matches the text, or several do.
        NothingYet: there is no database.
        UsageError: a rewind of the thread was interrupted.
    """
    from graph_agent.config.redaction import known_secrets  # noqa: PLC0415 - see above

    with read_database(database) as reader:
        thread_id = reader.resolve(text, here, ("thread", "checkpoint")).thread_id
        blobs, secrets = open_blobs(database), known_secrets(os.environ)
        with closing(reader.export(thread_id, blobs.get, secrets)) as lines:
            yield lines


@dataclass(frozen=True, slots=True)
class Deleted:
    """What was deleted."""

    threads: tuple[ThreadSummary, ...] = ()
    """Empty if the person did not consent."""
    collected: GarbageResult = field(default_factory=GarbageResult)
    """Unreferenced blobs and spools; what was written within the hour is removed by a later prune."""


async def delete(
    database: Path, texts: Sequence[str], consents: Callable[[Sequence[ThreadSummary]], bool]
) -> Deleted:
    """Delete the threads that the texts name, with their sub-agents, in one transaction, once the person consents.

    Raises:
        UnknownId: no id matches a text, or several do.
        NothingYet: there is no database.
        ThreadHeld: another process holds one of them; none is deleted.
    """
    from graph_agent.storage.sqlite.projections import delete_threads  # noqa: PLC0415 - see above
    from graph_agent.toolbox.background_shells import Shells  # noqa: PLC0415 - see above

    if not all(text.strip() for text in texts):
        raise UsageError("An id is blank. Give the id of each thread to delete.")
    with read_database(database) as reader:
        named = {reader.resolve(text, kinds=("thread",)).thread_id for text in texts}
        found = {thread.thread_id: thread for thread_id in named for thread in reader.family(thread_id)}
    # Sorted: two processes that delete the same threads must not each hold one of them.
    ids = sorted(found)
    threads = tuple(found[thread_id] for thread_id in ids)
    if not consents(threads):
        return Deleted()
    blobs = open_blobs(database)
    async with await open_database(database) as opened:
        async with AsyncExitStack() as held:
            locks = [thread_lock(opened, SystemClock()) for _ in ids]
            for thread_id, lock in zip(ids, locks, strict=True):
                await lock.acquire(thread_id, new_owner_token())
                held.push_async_callback(lock.release)
            for thread_id in ids:
                # Once the thread is gone nobody would know of its background shells.
                await Shells(SqliteShells(opened, SystemClock()), blobs, lambda _: None).reattach(thread_id)
            for lock in locks:
                lock.mark_deleted()
            await opened.write(lambda connection: delete_threads(connection, ids))
            for thread_id in ids:
                blobs.drop_spools(thread_id)
        collected = await opened.run(lambda connection: collect_garbage(connection, blobs))
        await opened.run(release_free_pages)
    return Deleted(threads, collected)


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
    """What was pruned of one thread."""

    thread_id: str
    checkpoints: int = 0
    """How many were deleted."""
    snapshots: int = 0
    held_by: str = ""
    """Why it was skipped."""
    is_deleted: bool = False
    """It had no message."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was pruned of all."""

    bytes_before: int
    bytes_after: int
    threads: tuple[PrunedThread, ...]
    collected: GarbageResult
    """Unreferenced blobs and spools."""


async def prune(database: Path, order: PruneOrder) -> Pruned:
    """Prune what is ordered. A thread that another process holds is skipped and named.

    Raises:
        UnknownId: no id matches the text, or several do.
        NothingYet: there is no database.
    """
    if order.max_bytes is not None:
        refuse_server(database, "prune --max-size")
    with read_database(database) as reader:
        named = reader.resolve(order.text, kinds=("thread", "checkpoint")).thread_id if order.text else None
        found = reader.threads(with_abandoned=True) if named is None else reader.family(named)
        least_recent = list(reversed(found))
    chosen = [thread.thread_id for thread in least_recent if _is_old(thread, order.older_than)]
    async with await open_database(database) as opened:
        before = await opened.size()
        done = {thread_id: await _prune_thread(opened, thread_id, order.keep_turns) for thread_id in chosen}
        await opened.run(release_free_pages)
        if order.max_bytes is not None:
            await _prune_to_size(opened, order.keep_turns, order.max_bytes, done)
        collected = await opened.run(lambda connection: collect_garbage(connection, open_blobs(database)))
        await opened.run(release_free_pages)
        after = await opened.size()
    return Pruned(before, after, tuple(done.values()), collected)


def _is_old(thread: ThreadSummary, age: timedelta | None) -> bool:
    if age is None:
        return True
    try:
        return datetime.fromisoformat(thread.updated_at) < datetime.now(UTC) - age
    except ValueError as error:
        raise UsageError(f"The time of thread {thread.thread_id!r} is not valid: {thread.updated_at!r}.") from error


async def _prune_to_size(
    database: Database, keep_turns: int, max_bytes: int, done: dict[str, PrunedThread]
) -> None:
    while keep_turns > 1:
        keep_turns //= 2
        for thread_id, earlier in tuple(done.items()):
            if await database.size() <= max_bytes:
                return
            now = await _prune_thread(database, thread_id, keep_turns)
            checkpoints, snapshots = earlier.checkpoints + now.checkpoints, earlier.snapshots + now.snapshots
            done[thread_id] = PrunedThread(thread_id, checkpoints, snapshots, now.held_by)
            await database.run(release_free_pages)


async def _prune_thread(database: Database, thread_id: str, keep_turns: int) -> PrunedThread:
    lock = thread_lock(database, SystemClock())
    try:
        await lock.acquire(thread_id, new_owner_token())
    except ThreadHeld as held:
        return PrunedThread(thread_id, held_by=str(held))
    try:
        if await ThreadTable(database, SystemClock()).delete_if_empty(thread_id, lock):
            return PrunedThread(thread_id, is_deleted=True)
        pruned = await _checkpointer(database).prune_thread(thread_id, keep_turns)
    finally:
        await lock.release()
    return PrunedThread(thread_id, pruned.checkpoints, pruned.snapshots)


def _checkpointer(database: Database) -> "CheckpointSaver":
    from graph_agent.storage.sqlite.checkpointer import CheckpointSaver  # noqa: PLC0415 - see above

    return CheckpointSaver(database)


@dataclass(frozen=True, slots=True)
class Forked:
    """The new thread and where it comes from."""

    thread_id: str
    parent_thread: str
    checkpoint_id: str
    turns: int
    open_calls: int
    """Calls that will be asked about, or run, when the new thread is resumed."""


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
        thread_id: id of the new thread; None makes one.
        workspace: where the newest thread is looked for if the text is empty.

    Raises:
        UnknownId: no id matches the text, or several do.
        UsageError: the id is blank or a thread has it already, or the thread to fork has no checkpoint yet.
    """
    from graph_agent.storage.sqlite.thread_fork import Fork  # noqa: PLC0415 - see above

    if thread_id is not None and not thread_id.strip():
        raise UsageError("--as needs an id that is not blank. Omit it to generate one.")
    with read_database(database) as reader:
        target = reader.resolve(text, workspace, ("thread", "checkpoint"))
        newest = reader.thread(target.thread_id).checkpoint_id
    checkpoint_id = target.id if target.kind == "checkpoint" else newest
    if checkpoint_id is None:
        raise UsageError(f"Thread {target.thread_id!r} has no checkpoint yet, so there is nothing to fork.")
    order = Fork(target.thread_id, checkpoint_id, thread_id or uuid4().hex, (clock or SystemClock()).now())
    async with await open_database(database) as opened:
        await _checkpointer(opened).fork(order)
    with read_database(database) as reader:
        calls = reader.inspection(order.target).calls
        turns = reader.thread(order.target).turns
    still_open = sum(view.record["status"] not in FINAL for view in calls)
    return Forked(order.target, order.source, checkpoint_id, turns, still_open)
