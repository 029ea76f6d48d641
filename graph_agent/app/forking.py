"""Makes a thread of its own from a checkpoint of another, which stays exactly as it is. Runs nothing."""

from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from graph_agent.calls import FINAL
from graph_agent.errors import UsageError
from graph_agent.inspect import Reader
from graph_agent.ports import Clock, SystemClock
from graph_agent.store.database import Database
from graph_agent.store.forking import Fork
from graph_agent.store.saver import CheckpointSaver

__all__ = ["Forked", "fork"]


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
    with Reader.open(database) as reader:
        target = reader.resolve(text, workspace, ("thread", "checkpoint"))
        head = reader.thread(target.thread_id).checkpoint_id
    checkpoint_id = target.id if target.kind == "checkpoint" else head
    if checkpoint_id is None:
        raise UsageError(f"thread {target.thread_id!r} has no checkpoint yet; there is nothing to fork")
    order = Fork(target.thread_id, checkpoint_id, thread_id or uuid4().hex, (clock or SystemClock()).now())
    async with await Database.open(database) as opened:
        await CheckpointSaver(opened).fork(order)
    with Reader.open(database) as reader:
        made = reader.inspection(order.target)
        turns = reader.thread(order.target).turns
    still_open = sum(view.record["status"] not in FINAL for view in made.calls)
    return Forked(order.target, order.source, checkpoint_id, turns, still_open)
