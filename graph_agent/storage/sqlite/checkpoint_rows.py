"""The one place where a row of `checkpoints` becomes a checkpoint: intact, or an error that says what is wrong.

A checkpoint depends on its parent and on the writes that it applied, and its metadata names these. Without one of
them its state would look valid but show the model a history that never happened.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from xxhash import xxh32_hexdigest

from graph_agent.errors import DamagedDatabase
from graph_agent.storage import Connection
from graph_agent.storage.decoder import Decoder, PlainDecoder, UnreadableValue
from graph_agent.storage.legacy_names import current_checkpoint

__all__ = [
    "DELTAS",
    "DEPENDS_ON",
    "BrokenCheckpoint",
    "CheckpointCheck",
    "Execute",
    "Link",
    "check_checkpoints",
    "explain_damage",
    "missing_writes",
    "read_checkpoint",
    "read_write",
    "refresh_write_checksums",
    "split_metadata",
    "write_checksums",
]

DELTAS = ("messages", "calls")
"""Channels whose value is derived from the writes since the last snapshot."""
DEPENDS_ON = "depends_on"
"""Key in the metadata: how many writes of its parent a checkpoint applied, and checksums of those to the deltas."""
_DIGITS = 8

Execute = Callable[[str, Sequence[Any]], Iterable[tuple[Any, ...]]]
"""Gives the rows of a statement."""


class BrokenCheckpoint(DamagedDatabase):
    """A checkpoint that is damaged; its reader adds the file and what to do."""

    def __init__(self, thread_id: str, checkpoint_id: str, problem: str) -> None:
        super().__init__(
            f"Checkpoint {checkpoint_id} of thread {thread_id} is damaged: {problem}. "
            "`graph-agent doctor --repair` recovers what it can."
        )
        self.thread_id = thread_id
        self.checkpoint_id = checkpoint_id
        self.problem = problem


class Link(NamedTuple):
    """A checkpoint on a line of ancestors."""

    id: str
    parent_id: str | None
    checkpoint: dict[str, Any]
    metadata: dict[str, Any]
    """As LangGraph wrote it."""
    depends_on: Mapping[str, Any] | None
    """None for a checkpoint of an earlier version."""

    @property
    def values(self) -> dict[str, Any]:
        """The channels that it holds itself."""
        values: dict[str, Any] = self.checkpoint.get("channel_values") or {}
        return values

    @property
    def versions(self) -> dict[str, Any]:
        """The version of each channel."""
        versions: dict[str, Any] = self.checkpoint.get("channel_versions") or {}
        return versions


def read_checkpoint(decoder: Decoder, thread_id: str, row: Sequence[Any]) -> Link:
    """The checkpoint of a row: id, id of the parent, type, content and metadata.

    Raises:
        BrokenCheckpoint: it cannot be decoded, or lacks what every reader relies on.
    """
    checkpoint_id, parent_id, kind, content, metadata = row
    try:
        checkpoint = _decoded(decoder, kind, content)
        about = _metadata(metadata)
        _require_shape(checkpoint_id, parent_id, checkpoint)
    except _InvalidCheckpoint as invalid:
        raise BrokenCheckpoint(thread_id, str(checkpoint_id), str(invalid)) from invalid
    return Link(str(checkpoint_id), parent_id, current_checkpoint(checkpoint), *split_metadata(about))


def split_metadata(metadata: dict[str, Any]) -> tuple[dict[str, Any], Mapping[str, Any] | None]:
    """Metadata as LangGraph wrote it, and what this program added: the writes that the checkpoint depends on."""
    added = metadata.get(DEPENDS_ON)
    left = {name: value for name, value in metadata.items() if name != DEPENDS_ON}
    return left, added if isinstance(added, Mapping) else None


class _InvalidCheckpoint(Exception):
    """What is wrong, as the end of a sentence."""


def _decoded(decoder: Decoder, kind: Any, content: Any) -> dict[str, Any]:
    if not isinstance(kind, str) or not isinstance(content, bytes):
        raise _InvalidCheckpoint("it holds no stored value")
    try:
        value = decoder.value(kind, content)
    except UnreadableValue as error:
        raise _InvalidCheckpoint(f"its content {error.problem}") from error
    if not isinstance(value, dict):
        raise _InvalidCheckpoint(f"it holds {value!r:.40} instead of a checkpoint")
    return value


def _metadata(stored: Any) -> dict[str, Any]:
    try:
        about = json.loads(stored)
    except (TypeError, ValueError, RecursionError) as error:
        raise _InvalidCheckpoint(f"its metadata cannot be read ({error})") from error
    if (
        not isinstance(about, dict)
        or type(about.get("step")) is not int
        or not isinstance(about.get("source"), str)
    ):
        raise _InvalidCheckpoint("its metadata name neither step nor source")
    return dict(about)


def _require_shape(checkpoint_id: Any, parent_id: Any, checkpoint: Mapping[str, Any]) -> None:
    if not isinstance(parent_id, str | None):
        raise _InvalidCheckpoint("the id of its parent is not text")
    if checkpoint.get("id") != checkpoint_id:
        raise _InvalidCheckpoint(f"it holds the checkpoint {checkpoint.get('id')!r:.60}")
    for name in ("channel_values", "channel_versions", "versions_seen"):
        if not isinstance(checkpoint.get(name), dict):
            raise _InvalidCheckpoint(f"its {name} are missing")
    seen = checkpoint["versions_seen"].values()
    is_sound = (
        isinstance(checkpoint.get("v"), int)
        and isinstance(checkpoint.get("ts"), str)
        and isinstance(checkpoint["channel_values"].get("__pregel_tasks", []), list)
        and all(isinstance(one, dict) for one in seen)
    )
    if not is_sound:
        raise _InvalidCheckpoint("its version, time or tasks are invalid")


def write_checksums(rows: Iterable[Sequence[Any]]) -> dict[str, Any]:
    """The number of writes of its parent, with checksums, for the metadata of a checkpoint.

    Args:
        rows: of each write the task, its path, its number there, channel, type and value.
    """
    count = 0
    sums: dict[str, str] = {}
    for task_id, path, number, channel, kind, value in rows:
        if number < 0:  # LangGraph replaces these: a task's interrupts, answers and errors.
            continue
        count += 1
        if channel in DELTAS:
            sums[channel] = sums.get(channel, "") + _checksum(task_id, path, number, kind, value)
    return {"writes": count, **sums}


def missing_writes(child: Link, parent: Link | None, channel: str, there: Iterable[Sequence[Any]]) -> int:
    """How many writes that a checkpoint applied to a delta channel its parent no longer has, or has changed.

    More may have been written there since. A checkpoint of an earlier version only shows whether there was one.

    Args:
        there: the writes of the parent to the channel: task, path, number, type and value.
    """
    if child.depends_on is None:
        is_changed = parent is not None and child.versions.get(channel) != parent.versions.get(channel)
        return int(is_changed and not any(True for _ in there))
    named = child.depends_on.get(channel, "")
    if not named:
        return 0
    found = {_checksum(*row) for row in there}
    return sum(named[place : place + _DIGITS] not in found for place in range(0, len(named), _DIGITS))


def refresh_write_checksums(connection: Connection, thread_id: str) -> None:
    """Record the current writes in the metadata of every checkpoint of a thread."""
    for namespace, checkpoint_id, parent_id, text in connection.execute(_LINKS, (thread_id,)).fetchall():
        about = json.loads(text)
        if DEPENDS_ON in about:
            rows = connection.execute(_WRITES, (thread_id, namespace, parent_id)).fetchall()
            about[DEPENDS_ON] = write_checksums(rows)
            stored = json.dumps(about, ensure_ascii=False).encode("utf-8", "replace")
            connection.execute(_SET_METADATA, (stored, thread_id, namespace, checkpoint_id))


def _checksum(task_id: Any, path: Any, number: Any, kind: Any, value: Any) -> str:
    content = value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")
    return xxh32_hexdigest(f"{task_id} {path} {number} {kind} ".encode("utf-8", "replace") + content)


_LINKS = """
SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, CAST(metadata AS TEXT) FROM checkpoints
WHERE thread_id = ?
"""
_SET_METADATA = """
UPDATE checkpoints SET metadata = ? WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?
"""
_ALL = """
SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, CAST(metadata AS BLOB)
FROM checkpoints WHERE ?1 IS NULL OR thread_id = ?1 ORDER BY rowid
"""
_WRITES = """
SELECT task_id, task_path, idx, channel, type, value FROM writes
WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? ORDER BY task_path, task_id, idx
"""
_PRUNED = "SELECT checkpoint_id FROM pruned_checkpoints WHERE thread_id = ?"


class CheckpointCheck(NamedTuple):
    """The result of checking one checkpoint."""

    thread_id: str
    namespace: str
    id: str
    is_whole: bool
    """Whether its state can be rebuilt."""
    problem: str
    """What is wrong with it, or with what it depends on; empty: nothing."""
    has_writes: bool
    """Whether everything written at it can be read."""


class _ReadCheckpoint(NamedTuple):
    link: Link
    is_whole: bool
    writes: list[tuple[Any, ...]] | None
    """None where one cannot be read."""


def check_checkpoints(
    execute: Execute, decoder: Decoder, thread_id: str | None = None
) -> Iterator[CheckpointCheck]:
    """Check every checkpoint of a thread, or of all, in the order in which they were stored."""
    seen: dict[tuple[str, str, str], _ReadCheckpoint] = {}
    pruned: dict[str, set[str]] = {}
    for thread, namespace, *row in list(execute(_ALL, (thread_id,))):
        key = (thread, namespace, row[0])
        if thread not in pruned:
            pruned[thread] = {str(one) for (one,) in execute(_PRUNED, (thread,))}
        writes = list(execute(_WRITES, key))
        unreadable = sum(not _is_readable(decoder, write[3:]) for write in writes)
        noted = _format_count(unreadable, "write", "cannot be read") if unreadable else ""
        try:
            link = read_checkpoint(decoder, key[0], row)
        except BrokenCheckpoint as broken:
            yield CheckpointCheck(*key, is_whole=False, problem=broken.problem, has_writes=not unreadable)
            continue
        parent = seen.get((*key[:2], link.parent_id or ""))
        problem, is_whole = _check_dependencies(link, parent, pruned[thread])
        seen[key] = _ReadCheckpoint(link, is_whole, None if unreadable else writes)
        yield CheckpointCheck(*key, is_whole=is_whole, problem=problem or noted, has_writes=not unreadable)


def _check_dependencies(link: Link, parent: _ReadCheckpoint | None, pruned: set[str]) -> tuple[str, bool]:
    """What is wrong with what a checkpoint depends on, and whether its state is intact nevertheless."""
    derived = [name for name in DELTAS if name in link.versions and name not in link.values]
    problem = ""
    if link.parent_id is None:
        return "", True
    if parent is None:
        if derived or link.parent_id not in pruned:
            problem = f"its parent {link.parent_id} is missing or damaged"
    elif derived and not parent.is_whole:
        problem = f"its parent {link.parent_id} is damaged"
    elif parent.writes is None:
        problem = f"a write that it depends on, at {link.parent_id}, cannot be read"
    elif lost := _format_lost_writes(link, parent, derived):
        problem = f"writes that it depends on, at {link.parent_id}, are missing or changed ({lost})"
    else:
        noted = (link.depends_on or {}).get("writes", 0)
        lost_others = noted - sum(isinstance(row[2], int) and row[2] >= 0 for row in parent.writes)
        if lost_others > 0:
            named = _format_count(lost_others, "write", "is missing", "are missing")
            return f"{named} at its parent {link.parent_id}", True
    return problem, not (problem and derived)


def _format_lost_writes(link: Link, parent: _ReadCheckpoint, derived: Sequence[str]) -> str:
    """How many writes are missing of each delta channel."""
    lost = {}
    for name in derived:
        there = [(*row[:3], *row[4:]) for row in parent.writes or () if row[3] == name]
        lost[name] = missing_writes(link, parent.link, name, there)
    return ", ".join(f"{count} to {name}" for name, count in lost.items() if count)


def _format_count(count: int, noun: str, one: str, several: str = "") -> str:
    return f"1 {noun} {one}" if count == 1 else f"{count} {noun}s {several or one}"


def read_write(decoder: Decoder, key: tuple[str, str, str], row: Sequence[Any]) -> Any:
    """The value of a write that is stored at a checkpoint: channel, type and content.

    Raises:
        BrokenCheckpoint: it cannot be decoded, or is nothing that a node writes to this channel.
    """
    channel, kind, content = row
    problem = "holds no stored value"
    if isinstance(channel, str) and isinstance(kind, str) and isinstance(content, bytes):
        try:
            value = decoder.write(channel, kind, content)
        except UnreadableValue as error:
            problem = error.problem
        else:
            if _has_shape(channel, value):
                return value
            problem = f"holds {value!r:.40}"
    raise BrokenCheckpoint(key[0], key[2], f"a write to {channel!r:.40} at it {problem}")


def _has_shape(channel: str, value: Any) -> bool:
    """Whether a write can be one to this channel: messages or calls, alone or in what LangGraph wraps them in."""
    return channel not in DELTAS or not (value is None or isinstance(value, str | bytes | int | float))


def _is_readable(decoder: Decoder, row: Sequence[Any]) -> bool:
    try:
        read_write(decoder, ("", "", ""), row)
    except BrokenCheckpoint:
        return False
    return True


def explain_damage(path: Path, execute: Execute, broken: BrokenCheckpoint) -> DamagedDatabase:
    """The error with the file, the newest intact checkpoint, and what to do."""
    thread_id, whole = broken.thread_id, ""
    for found in check_checkpoints(execute, PlainDecoder(), thread_id):
        if found.is_whole and not found.namespace:
            whole = max(whole, found.id)
    rest = f"The newest intact checkpoint is {whole}" if whole else "None of its checkpoints is intact"
    return DamagedDatabase(
        f"Checkpoint {broken.checkpoint_id} of thread {thread_id} in {path} is damaged: {broken.problem}. "
        f"{rest}; `graph-agent doctor --repair` keeps a copy and recovers what it can."
    )
