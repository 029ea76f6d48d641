"""The state of one checkpoint as the engine would tell it: values, next nodes, tasks, interrupts, writes."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from graph_agent.errors import DamagedDatabase, UnknownId
from graph_agent.inspect.channels import channel_values
from graph_agent.inspect.database import ReadOnlyDatabase
from graph_agent.inspect.decode import decode, decode_checkpoint, decode_metadata
from graph_agent.inspect.planning import Planned, planned_tasks

__all__ = ["CheckpointState", "PendingWrite", "Task", "of_a_shape", "read_state"]

_NO_TASK = "00000000-0000-0000-0000-000000000000"
_INTERRUPT, _ERROR = "__interrupt__", "__error__"
_CONTROL = frozenset((_INTERRUPT, _ERROR, "__error_source_node__", "__resume__"))
"""Channels that say what happened to a task, not what it produced."""


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """A write stored at the checkpoint: it takes effect with the next one."""

    task_id: str
    task_path: str
    channel: str
    value: Any


@dataclass(frozen=True, slots=True)
class Task:
    """One node run that the checkpoint leads to."""

    id: str
    """Empty until the task has written something."""
    node: str
    path: str
    """Which run of the node it is, as writes name it."""
    status: Literal["waiting", "interrupted", "failed", "finished"]
    interrupts: tuple[Mapping[str, Any], ...] = ()
    """`{id, value, node}` of each question the task asked, answered or not."""
    error: str | None = None
    input: Any = None
    """What a task that runs once per call was given, or the first one of a turn takes in."""


@dataclass(frozen=True, slots=True)
class CheckpointState:
    """One checkpoint."""

    thread_id: str
    checkpoint_id: str
    parent_id: str | None
    created_at: str
    metadata: Mapping[str, Any]
    values: Mapping[str, Any]
    """The state's channels; not what waits in `pending_writes`."""
    tasks: tuple[Task, ...]
    pending_writes: tuple[PendingWrite, ...]
    is_head: bool
    """Whether it is the thread's newest: then `next` and `interrupts` leave out what has finished since. An older
    one is a record of its step."""

    @property
    def next(self) -> tuple[str, ...]:
        """The nodes that have to run. Empty does not mean at rest: see `is_at_rest`."""
        return tuple(task.node for task in self._open_tasks)

    @property
    def interrupts(self) -> tuple[Mapping[str, Any], ...]:
        """The questions asked."""
        return tuple(item for task in self._open_tasks for item in task.interrupts)

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing is left to run, nor to be taken in of what ran."""
        return not self.tasks

    @property
    def _open_tasks(self) -> list[Task]:
        return [task for task in self.tasks if task.status != "finished" or not self.is_head]


def read_state(database: ReadOnlyDatabase, thread_id: str, checkpoint_id: str, *, is_head: bool) -> CheckpointState:
    """Rebuild a checkpoint.

    Raises:
        UnknownId: the thread has no such checkpoint.
        DamagedDatabase: what is stored cannot be decoded, or is another value than any that was stored.
    """
    with of_a_shape(f"checkpoint {checkpoint_id} of thread {thread_id}"):
        return _rebuilt(database, thread_id, checkpoint_id, is_head=is_head)


@contextmanager
def of_a_shape(what: str) -> Iterator[None]:
    """Values are read in this block whose shape nobody checked: a bit turned in one can leave a sound other value.

    Raises:
        DamagedDatabase: what is read has another shape than whatever is stored.
    """
    try:
        yield
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise DamagedDatabase(
            f"{what} holds a value of a shape that is never stored ({error}); the database is torn or was changed "
            "by another program. Put back a backup, or name another file with --db."
        ) from error


def _rebuilt(database: ReadOnlyDatabase, thread_id: str, checkpoint_id: str, *, is_head: bool) -> CheckpointState:
    rows = database.rows(
        """SELECT parent_checkpoint_id, type, checkpoint, metadata FROM checkpoints
        WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?""",
        (thread_id, checkpoint_id),
    )
    if not rows:
        raise UnknownId(
            f"thread {thread_id!r} has no checkpoint {checkpoint_id!r} (any more); "
            f"`graph-agent inspect {thread_id}` shows its newest."
        )
    [(parent_id, kind, blob, metadata)] = rows
    checkpoint = decode_checkpoint(kind, blob)
    known = decode_metadata(metadata)
    tasks = planned_tasks(checkpoint)
    ids = [task.id_at(checkpoint_id, (known.get("step") or 0) + 1) for task in tasks]
    writes = tuple(_with_path(w, tasks, ids) for w in _pending_writes(database, thread_id, checkpoint_id))
    return CheckpointState(
        thread_id,
        checkpoint_id,
        parent_id,
        checkpoint.get("ts", ""),
        known,
        channel_values(database, thread_id, parent_id, checkpoint, known),
        tuple(_task(planned, writes) for planned in tasks),
        writes,
        is_head,
    )


def _pending_writes(database: ReadOnlyDatabase, thread_id: str, checkpoint_id: str) -> tuple[PendingWrite, ...]:
    rows = database.rows(
        """SELECT task_id, task_path, channel, type, value FROM writes
        WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ? ORDER BY task_path, task_id, idx""",
        (thread_id, checkpoint_id),
    )
    return tuple(
        PendingWrite(task_id, path, channel, decode(kind, blob)) for task_id, path, channel, kind, blob in rows
    )


def _with_path(write: PendingWrite, tasks: Sequence[Planned], ids: Sequence[str]) -> PendingWrite:
    """The write with its task's path, where the file is from before those were stored."""
    if write.task_path or write.task_id == _NO_TASK:
        return write
    if write.task_id in ids:
        return replace(write, task_path=tasks[ids.index(write.task_id)].path)
    return replace(write, task_path=tasks[0].path) if len(tasks) == 1 else write


def _task(planned: Planned, writes: tuple[PendingWrite, ...]) -> Task:
    path, node, given, _ = planned
    own = [
        w for w in writes if w.task_id != _NO_TASK and (w.task_path == path or w.task_path.startswith(f"{path}, "))
    ]
    interrupts = tuple(
        {"id": item.get("id"), "value": item.get("value"), "node": node}
        for write in own
        if write.channel == _INTERRUPT
        for item in (write.value if isinstance(write.value, list) else [write.value])
        if isinstance(item, dict)
    )
    errors = [str(write.value) for write in own if write.channel == _ERROR]
    task_id = own[0].task_id if own else ""
    if any(write.channel not in _CONTROL for write in own):
        return Task(task_id, node, path, "finished", interrupts, None, given)
    status: Literal["waiting", "interrupted", "failed"] = "waiting"
    if errors or interrupts:
        status = "failed" if errors else "interrupted"
    return Task(task_id, node, path, status, interrupts, errors[0] if errors else None, given)
