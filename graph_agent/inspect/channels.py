"""Rebuilds the values of a checkpoint's channels, those stored as deltas too, without the graph that wrote them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from graph_agent.calls import merge_calls
from graph_agent.inspect.database import ReadOnlyDatabase
from graph_agent.inspect.decode import Snapshot, decode

__all__ = ["channel_values"]

_INTERNAL = ("branch:to:", "__")
"""Channels the engine keeps for itself."""

_DELTAS = ("messages", "calls")
_OVERWRITE = "langgraph.types.Overwrite"

# Ancestors are found by their link, not by the order of their ids: ids rise within one process only.
_ANCESTORS = """WITH RECURSIVE chain(id, parent, type, checkpoint) AS (
    SELECT checkpoint_id, parent_checkpoint_id, type, checkpoint FROM checkpoints
    WHERE thread_id = ?1 AND checkpoint_ns = '' AND checkpoint_id = ?2
    UNION ALL
    SELECT c.checkpoint_id, c.parent_checkpoint_id, c.type, c.checkpoint FROM chain CROSS JOIN checkpoints c
    ON c.thread_id = ?1 AND c.checkpoint_ns = '' AND c.checkpoint_id = chain.parent)
SELECT id, type, checkpoint FROM chain"""
_WRITES = """SELECT channel, type, value FROM writes
    WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ? AND channel IN ('messages', 'calls')
    ORDER BY task_path, task_id, idx"""


def channel_values(
    database: ReadOnlyDatabase, thread_id: str, parent_id: str | None, checkpoint: Mapping[str, Any]
) -> dict[str, Any]:
    """The state the graph had at a decoded checkpoint; writes that wait at the checkpoint itself are not in it."""
    stored: dict[str, Any] = checkpoint.get("channel_values") or {}
    values = {
        name: value.value if isinstance(value, Snapshot) else value
        for name, value in stored.items()
        if not name.startswith(_INTERNAL)
    }
    versions = checkpoint.get("channel_versions") or {}
    missing = [name for name in _DELTAS if name in versions and name not in values]
    if missing:
        values |= _replayed(database, thread_id, parent_id, missing)
    return values


def _replayed(
    database: ReadOnlyDatabase, thread_id: str, parent_id: str | None, missing: list[str]
) -> dict[str, Any]:
    seeds: dict[str, Any] = {}
    batches: dict[str, list[list[Any]]] = {name: [] for name in missing}
    for checkpoint_id, stored in _ancestors(database, thread_id, parent_id):
        wanted = [name for name in missing if name not in seeds]
        if not wanted:
            break
        written: dict[str, list[Any]] = {name: [] for name in _DELTAS}
        for channel, kind, blob in database.rows(_WRITES, (thread_id, checkpoint_id)):
            if channel in wanted:
                written[channel].append(decode(kind, blob))
        for name in wanted:
            batches[name].append(written[name])
            if name in stored:
                seeds[name] = stored[name].value if isinstance(stored[name], Snapshot) else stored[name]
    return {
        name: _fold(name, seeds.get(name), [write for batch in reversed(batches[name]) for write in batch])
        for name in missing
    }


def _ancestors(
    database: ReadOnlyDatabase, thread_id: str, parent_id: str | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Id and stored channel values, nearest first. A chain that bites its own tail ends there."""
    seen = set()
    for checkpoint_id, kind, blob in database.stream(_ANCESTORS, (thread_id, parent_id)):
        if checkpoint_id in seen:
            return
        seen.add(checkpoint_id)
        yield checkpoint_id, decode(kind, blob).get("channel_values") or {}


def _fold(name: str, seed: Any, writes: list[Any]) -> Any:
    for position in range(len(writes) - 1, -1, -1):
        is_reset, base = _overwrite(writes[position])
        if is_reset:
            seed, writes = base, writes[position + 1 :]
            break
    if name == "calls":
        return merge_calls(seed or {}, [write for write in writes if isinstance(write, dict)])
    return _merge_messages(seed or [], writes)


def _overwrite(write: Any) -> tuple[bool, Any]:
    if isinstance(write, dict) and write.get("__type__") == _OVERWRITE:
        return True, write.get("value")
    if isinstance(write, dict) and set(write) == {"__overwrite__"}:
        return True, write["__overwrite__"]
    return False, None


def _merge_messages(messages: Iterable[dict[str, Any]], writes: Iterable[Any]) -> list[dict[str, Any]]:
    """As the graph folds them: upsert by id where it first stood, remove by a message of type `remove`."""
    merged = {message.get("id"): message for message in messages}
    for write in writes:
        for message in write if isinstance(write, list) else [write]:
            if message.get("type") == "remove":
                merged.pop(message.get("id"), None)
            else:
                merged[message.get("id")] = message
    return list(merged.values())
