"""Rebuilds the values of a checkpoint's channels, those stored as deltas too, without the graph that wrote them."""

from collections.abc import Iterable, Mapping
from typing import Any

from graph_agent.calls import merge_calls
from graph_agent.inspect.database import ReadOnlyDatabase
from graph_agent.inspect.decode import Snapshot, decode
from graph_agent.inspect.line import line_to

__all__ = ["channel_values"]

_INTERNAL = ("branch:to:", "__")
"""Channels the engine keeps for itself."""

_DELTAS = ("messages", "calls")
_OVERWRITE = "langgraph.types.Overwrite"

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
    for ancestor in line_to(database, thread_id, parent_id):
        wanted = [name for name in missing if name not in seeds]
        if not wanted:
            break
        written: dict[str, list[Any]] = {name: [] for name in _DELTAS}
        for channel, kind, blob in database.rows(_WRITES, (thread_id, ancestor.id)):
            if channel in wanted:
                written[channel].append(decode(kind, blob))
        stored = ancestor.checkpoint.get("channel_values") or {}
        for name in wanted:
            batches[name].append(written[name])
            if name in stored:
                seeds[name] = stored[name].value if isinstance(stored[name], Snapshot) else stored[name]
    return {
        name: _fold(name, seeds.get(name), [write for batch in reversed(batches[name]) for write in batch])
        for name in missing
    }


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
