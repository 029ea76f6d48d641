"""The state of one checkpoint as the engine would tell it: values, next nodes, tasks, interrupts, writes.

What a checkpoint leads to: which nodes run next, once or once per packet sent to them.

What differs between two states, place by place. Lists of things with ids are compared by id, not by position.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple
from uuid import UUID

from xxhash import xxh3_128_hexdigest

from graph_agent.errors import DamagedDatabase, UnknownId
from graph_agent.inspect.checkpoint_values import channel_values, decode, decode_checkpoint, decode_metadata
from graph_agent.inspect.connection import ReadOnlyDatabase

__all__ = [
    "Change",
    "CheckpointState",
    "PendingWrite",
    "Planned",
    "Task",
    "diff_values",
    "of_a_shape",
    "planned_nodes",
    "planned_tasks",
    "read_state",
]

_BRANCH = "branch:to:"
_JOIN = "join:"
_START = "__start__"
_TASKS = "__pregel_tasks"
_PUSH, _PULL = "__pregel_push", "__pregel_pull"


class Planned(NamedTuple):
    """One run of a node to come."""

    path: str
    """Which run of the node it is, as writes name it."""
    node: str
    given: Any
    """What a task that was sent a packet is given, or takes in as input; None of one that an edge has triggered."""
    marks: tuple[str, ...]
    """What tells it from the other tasks of the checkpoint in its id."""

    def id_at(self, checkpoint_id: str, step: int) -> str:
        """The id that the engine gives it, by which writes name it where they name no path.

        Of a graph that is no subgraph; in a file of long ago it may be another. Empty where the checkpoint's id is
        none of the engine's.
        """
        try:
            place = UUID(checkpoint_id).bytes
        except ValueError:
            return ""
        text = "".join((self.node, str(step), self.node, *self.marks))
        return str(UUID(xxh3_128_hexdigest(place + text.encode())))


def planned_nodes(checkpoint: Mapping[str, Any]) -> tuple[str, ...]:
    """The nodes that a decoded checkpoint leads to, each once; what takes in a message is none."""
    names = (task.node for task in planned_tasks(checkpoint) if not task.node.startswith("__"))
    return tuple(dict.fromkeys(names))


def planned_tasks(checkpoint: Mapping[str, Any]) -> list[Planned]:
    """First those sent to, one by one, then the nodes an edge has triggered."""
    values, versions = checkpoint.get("channel_values") or {}, checkpoint.get("channel_versions") or {}
    seen = checkpoint.get("versions_seen") or {}
    sent = [
        Planned(f"~{_PUSH}, {number:010d}", *_sent_to(packet), (_PUSH, str(number)))
        for number, packet in enumerate(values.get(_TASKS) or [])
    ]
    pulled = [
        Planned(
            f"~{_PULL}, {node}",
            node,
            values.get(_START) if node == _START else None,
            (_PULL, *_triggers_of(node, versions)),
        )
        for node, channels in sorted(_triggered(values).items())
        if any(versions.get(channel) != (seen.get(node) or {}).get(channel) for channel in channels)
    ]
    return sent + pulled


def _triggered(values: Mapping[str, Any]) -> dict[str, list[str]]:
    """The channels that have something for a node, by its name."""
    channels: dict[str, list[str]] = {}
    for name, value in values.items():
        if name.startswith((_BRANCH, _START)):
            channels.setdefault(name.removeprefix(_BRANCH), []).append(name)
        elif name.startswith(_JOIN) and _is_complete(name, value):
            channels.setdefault(name.rpartition(":")[2], []).append(name)
    return channels


def _triggers_of(node: str, versions: Mapping[str, Any]) -> list[str]:
    """Every channel that can trigger a node, in the order in which its id takes them in."""
    joins = [name for name in versions if name.startswith(_JOIN) and name.rpartition(":")[2] == node]
    return [node] if node == _START else sorted([f"{_BRANCH}{node}", *joins])


def _is_complete(name: str, value: Any) -> bool:
    """Whether a channel that waits for several nodes, `join:one+other:target`, has heard of all of them."""
    awaited = name.rpartition(":")[0].removeprefix(_JOIN)
    heard = value.get("value") if isinstance(value, dict) else None
    return isinstance(heard, list) and len("+".join(map(str, heard))) == len(awaited)


def _sent_to(packet: Any) -> tuple[str, Any]:
    arguments = packet.get("value") if isinstance(packet, dict) else None
    return (
        (str(arguments[0]), arguments[1]) if isinstance(arguments, list) and len(arguments) > 1 else ("?", packet)
    )


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
    def is_idle(self) -> bool:
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


_IDS = ("id", "call_id")
"""Fields by which an entry of a list is told from the others: messages have the first, calls the second."""


@dataclass(frozen=True, slots=True)
class Change:
    """One place that differs."""

    path: str
    """Dotted, as `inspect --path` takes it; entries of a list with ids are named by their id."""
    op: Literal["added", "removed", "changed"]
    old: Any
    """None where it was added."""
    new: Any
    """None where it was removed."""


def diff_values(old: Any, new: Any) -> list[Change]:
    """Every place where two JSON values differ, in the order of the new one; what was removed comes last."""
    return list(_compared(old, new, ""))


def _compared(old: Any, new: Any, path: str) -> Iterator[Change]:
    before, after = _by_name(old), _by_name(new)
    if before is None or after is None or type(old) is not type(new):
        # 1 and True are equal in Python, and two things in a state.
        if type(old) is not type(new) or old != new:
            yield Change(path, "changed", old, new)
        return
    for name, value in after.items():
        place = f"{path}.{name}" if path else name
        if name in before:
            yield from _compared(before[name], value, place)
        else:
            yield Change(place, "added", None, value)
    for name, value in before.items():
        if name not in after:
            yield Change(f"{path}.{name}" if path else name, "removed", value, None)


def _by_name(value: Any) -> Mapping[str, Any] | None:
    """The parts of a value by name; None for a value without parts."""
    if isinstance(value, dict):
        return value
    if not isinstance(value, list):
        return None
    for field in _IDS:
        names = [str(item[field]) for item in value if isinstance(item, dict) and item.get(field)]
        if len(names) == len(value) == len(set(names)):
            return dict(zip(names, value, strict=True))
    return {str(position): item for position, item in enumerate(value)}
