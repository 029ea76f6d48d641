"""The state of one checkpoint as LangGraph would report it, and the differences between two states.

The values of its channels, deltas included, are rebuilt without the graph that wrote them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from graph_agent.calls import REPLACES, merge_calls, replace_entries
from graph_agent.errors import DamagedDatabase, UnknownId
from graph_agent.ports.checkpoint_values import PlannedTask, are_messages, is_message, planned_tasks
from graph_agent.ports.read_store import ReadStore, StoredCheckpoint, StoredWrite

__all__ = [
    "Change",
    "CheckpointState",
    "Task",
    "channel_values",
    "diff_values",
    "expect_stored_shape",
    "read_state",
]

_NO_TASK = "00000000-0000-0000-0000-000000000000"
_INTERRUPT, _ERROR = "__interrupt__", "__error__"
_CONTROL = frozenset((_INTERRUPT, _ERROR, "__error_source_node__", "__resume__"))
"""Channels that say what happened to a task, not what it produced."""


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
    """The state's channels, without what waits in `pending_writes`."""
    tasks: tuple[Task, ...]
    pending_writes: tuple[StoredWrite, ...]
    is_head: bool
    """Whether it is the thread's newest: then `next` and `interrupts` leave out what has finished since. An older
    one is a record of its step."""

    @property
    def next(self) -> tuple[str, ...]:
        """The nodes that have to run. Empty does not mean idle: see `is_idle`."""
        return tuple(task.node for task in self._open_tasks)

    @property
    def interrupts(self) -> tuple[Mapping[str, Any], ...]:
        """The questions asked."""
        return tuple(item for task in self._open_tasks for item in task.interrupts)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left to run, and no result of a task is left to be applied."""
        return not self.tasks

    @property
    def _open_tasks(self) -> list[Task]:
        return [task for task in self.tasks if task.status != "finished" or not self.is_head]


def read_state(store: ReadStore, thread_id: str, checkpoint_id: str, *, is_head: bool) -> CheckpointState:
    """Rebuild a checkpoint.

    Raises:
        UnknownId: the thread has no such checkpoint.
        DamagedDatabase: what is stored cannot be decoded, or has a shape that is never stored.
    """
    with expect_stored_shape(f"checkpoint {checkpoint_id} of thread {thread_id}"):
        stored = store.checkpoint(thread_id, checkpoint_id)
        if stored is None:
            raise UnknownId(
                f"Thread {thread_id!r} has no checkpoint {checkpoint_id!r}, or it was pruned. "
                f"`graph-agent inspect {thread_id}` shows its newest."
            )
        checkpoint, metadata = stored.checkpoint, stored.metadata
        planned = planned_tasks(checkpoint)
        ids = [task.id_at(checkpoint_id, (metadata.get("step") or 0) + 1) for task in planned]
        writes = tuple(_with_path(write, planned, ids) for write in store.writes(thread_id, checkpoint_id))
        return CheckpointState(
            thread_id,
            checkpoint_id,
            stored.parent_id,
            checkpoint.get("ts", ""),
            metadata,
            channel_values(store, thread_id, stored),
            tuple(_task(task, writes) for task in planned),
            writes,
            is_head,
        )


@contextmanager
def expect_stored_shape(what: str) -> Iterator[None]:
    """Report values of an unexpected shape in this block as damage: one flipped bit can leave a valid other value.

    Raises:
        DamagedDatabase: what is read has a shape that is never stored.
    """
    try:
        yield
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise DamagedDatabase(
            f"{what} holds a value of a shape that is never stored ({error}): the database is damaged or was "
            "changed by another program. Restore a backup, or name another file with --db."
        ) from error


def _with_path(write: StoredWrite, tasks: Sequence[PlannedTask], ids: Sequence[str]) -> StoredWrite:
    """The write with its task's path, where the file is from before those were stored."""
    if write.task_path or write.task_id == _NO_TASK:
        return write
    if write.task_id in ids:
        return replace(write, task_path=tasks[ids.index(write.task_id)].path)
    return replace(write, task_path=tasks[0].path) if len(tasks) == 1 else write


def _task(planned: PlannedTask, writes: tuple[StoredWrite, ...]) -> Task:
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
"""Fields that identify an entry of a list: messages have the first, calls the second."""


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
    """Every place where two JSON values differ, in the order of the new one; removed places come last."""
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


_INTERNAL = ("branch:to:", "join:", "__")
"""Channels that LangGraph keeps for itself."""
_DELTAS = ("messages", "calls")
"""Channels of ours that are stored as deltas."""
_COUNTERS = "counters_since_delta_snapshot"
"""Where LangGraph notes in the metadata which channels have been stored as deltas since when."""
_ALL = "__remove_all__"
"""Id of a message that removes all others."""


def channel_values(store: ReadStore, thread_id: str, stored: StoredCheckpoint) -> dict[str, Any]:
    """The state that the graph had at a checkpoint, without the writes that wait at the checkpoint itself.

    How another program's deltas are folded is not documented: messages are merged by their ids, lists are joined,
    mappings merged, and of anything else all the writes are shown.
    """
    checkpoint = stored.checkpoint
    if "channel_values" not in checkpoint and "__type__" in checkpoint:
        return {"checkpoint": dict(checkpoint)}  # Encrypted, or in a form of its own.
    held: dict[str, Any] = checkpoint.get("channel_values") or {}
    values = {name: _unwrap(value) for name, value in held.items() if not name.startswith(_INTERNAL)}
    versions = checkpoint.get("channel_versions") or {}
    deltas = dict.fromkeys((*(() if store.is_foreign else _DELTAS), *(stored.metadata.get(_COUNTERS) or ())))
    missing = [name for name in deltas if name in versions and name not in values]
    for name, history in store.delta_history(thread_id, stored.id, missing).items() if missing else ():
        merge = _merge_by_shape if store.is_foreign else _merge_calls if name == "calls" else _merge_messages
        values[name] = _fold(_unwrap(history.seed), history.writes, merge)
    return values


def _unwrap(value: Any) -> Any:
    """The value; of a delta snapshot what it holds."""
    return value if isinstance(value, dict) else getattr(value, "value", value)


def _fold(seed: Any, writes: Sequence[Any], merge: Callable[[Any, Sequence[Any]], Any]) -> Any:
    """Merge the writes since the last overwrite into what that one stored, else into the seed."""
    for position in range(len(writes) - 1, -1, -1):
        match writes[position]:
            case {"__type__": "langgraph.types.Overwrite", **fields}:
                return merge(fields.get("value"), writes[position + 1 :])
            case {"__overwrite__": base, **fields} if not fields:
                return merge(base, writes[position + 1 :])
    return merge(seed, writes)


def _merge_calls(calls: Any, writes: Sequence[Any]) -> Any:
    return merge_calls(calls or {}, [write for write in writes if isinstance(write, dict)])


def _merge_messages(messages: Any, writes: Sequence[Any]) -> list[dict[str, Any]]:
    """Messages merged as the graph does: replaced by id in place, a summary in the place of what it summarizes."""
    merged: dict[Any, dict[str, Any]] = {_key_of(message): message for message in messages or ()}
    for write in writes:
        for message in write if isinstance(write, list) else [write]:
            replaced = (message.get("response_metadata") or {}).get(REPLACES)
            if message.get("type") == "remove":
                if message.get("id") == _ALL:
                    merged.clear()
                else:
                    merged.pop(message.get("id"), None)
            elif isinstance(replaced, list):
                merged = replace_entries(merged, replaced, _key_of(message), message)
            else:
                merged[_key_of(message)] = message
    return list(merged.values())


def _key_of(message: Mapping[str, Any]) -> Any:
    """Its id; a message without one equals no other."""
    return message.get("id") or object()


def _merge_by_shape(seed: Any, writes: Sequence[Any]) -> Any:
    parts = [*([] if seed is None else [seed]), *writes]
    if parts and all(is_message(part) or are_messages(part) or part == [] for part in parts):
        return _merge_messages([], parts)
    if all(isinstance(part, list) for part in parts):
        return [item for part in parts for item in part]
    if all(isinstance(part, dict) and "__type__" not in part for part in parts):
        return {key: value for part in parts for key, value in part.items()}
    return {"__type__": "delta", "base": seed, "writes": list(writes)}
