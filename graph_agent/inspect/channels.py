"""Rebuilds the values of a checkpoint's channels, those stored as deltas too, without the graph that wrote them."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graph_agent.calls import REPLACES, in_place_of, merge_calls
from graph_agent.inspect.database import ReadOnlyDatabase
from graph_agent.inspect.decode import Snapshot, decode
from graph_agent.inspect.line import line_to
from graph_agent.inspect.messages import are_messages, is_message

__all__ = ["channel_values"]

_INTERNAL = ("branch:to:", "join:", "__")
"""Channels the engine keeps for itself."""

_DELTAS = ("messages", "calls")
"""Channels of ours that are stored as deltas."""
_COUNTERS = "counters_since_delta_snapshot"
"""Where the engine notes in the metadata which channels stand as deltas since when."""
_OVERWRITE = "langgraph.types.Overwrite"
_ALL = "__remove_all__"
"""Id of a message that removes all others."""

_WRITES = """SELECT channel, type, value FROM writes
    WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ? AND channel IN (SELECT value FROM json_each(?))
    ORDER BY task_path, task_id, idx"""


def channel_values(
    database: ReadOnlyDatabase,
    thread_id: str,
    parent_id: str | None,
    checkpoint: Mapping[str, Any],
    metadata: Mapping[str, Any],
) -> dict[str, Any]:
    """The state the graph had at a decoded checkpoint; writes that wait at the checkpoint itself are not in it.

    How another program's deltas are folded nobody has written down: messages are taken by their ids, lists are
    joined, mappings merged, and of anything else all the writes are shown.
    """
    if "channel_values" not in checkpoint and "__type__" in checkpoint:
        return {"checkpoint": dict(checkpoint)}  # Encrypted, or in a form of its own.
    stored: dict[str, Any] = checkpoint.get("channel_values") or {}
    values = {
        name: value.value if isinstance(value, Snapshot) else value
        for name, value in stored.items()
        if not name.startswith(_INTERNAL)
    }
    versions = checkpoint.get("channel_versions") or {}
    deltas = dict.fromkeys((*(() if database.is_foreign else _DELTAS), *(metadata.get(_COUNTERS) or ())))
    missing = [name for name in deltas if name in versions and name not in values]
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
        written: dict[str, list[Any]] = {name: [] for name in wanted}
        for channel, kind, blob in database.rows(_WRITES, (thread_id, ancestor.id, json.dumps(wanted))):
            written[channel].append(decode(kind, blob))
        stored = ancestor.checkpoint.get("channel_values") or {}
        for name in wanted:
            batches[name].append(written[name])
            if name in stored:
                seeds[name] = stored[name].value if isinstance(stored[name], Snapshot) else stored[name]
    folded = {}
    for name in missing:
        writes = [write for batch in reversed(batches[name]) for write in batch]
        folded[name] = _fold(seeds.get(name), writes, _rule_of(name, is_foreign=database.is_foreign))
    return folded


_Rule = Callable[[Any, Sequence[Any]], Any]


def _rule_of(name: str, *, is_foreign: bool) -> _Rule:
    if is_foreign:
        return _by_shape
    return _merge_calls if name == "calls" else _merge_messages


def _fold(seed: Any, writes: Sequence[Any], rule: _Rule) -> Any:
    for position in range(len(writes) - 1, -1, -1):
        is_reset, base = _overwrite(writes[position])
        if is_reset:
            return rule(base, writes[position + 1 :])
    return rule(seed, writes)


def _overwrite(write: Any) -> tuple[bool, Any]:
    if isinstance(write, dict) and write.get("__type__") == _OVERWRITE:
        return True, write.get("value")
    if isinstance(write, dict) and set(write) == {"__overwrite__"}:
        return True, write["__overwrite__"]
    return False, None


def _merge_calls(calls: Any, writes: Sequence[Any]) -> Any:
    return merge_calls(calls or {}, [write for write in writes if isinstance(write, dict)])


def _merge_messages(messages: Any, writes: Sequence[Any]) -> list[dict[str, Any]]:
    """As the graph folds them: upsert by id where it first stood, a summary in the place of what it is of."""
    merged: dict[Any, dict[str, Any]] = {_key_of(message): message for message in messages or ()}
    for write in writes:
        for message in write if isinstance(write, list) else [write]:
            if message.get("type") != "remove":
                merged = _with(merged, message)
            elif message.get("id") == _ALL:
                merged.clear()
            else:
                merged.pop(message.get("id"), None)
    return list(merged.values())


def _with(merged: dict[Any, dict[str, Any]], message: dict[str, Any]) -> dict[Any, dict[str, Any]]:
    replaced = (message.get("response_metadata") or {}).get(REPLACES)
    if isinstance(replaced, list):
        return in_place_of(merged, replaced, _key_of(message), message)
    merged[_key_of(message)] = message
    return merged


def _key_of(message: Mapping[str, Any]) -> Any:
    """Its id; a message without one is the same as no other."""
    return message.get("id") or object()


def _by_shape(seed: Any, writes: Sequence[Any]) -> Any:
    parts = [*([] if seed is None else [seed]), *writes]
    if parts and all(is_message(part) or are_messages(part) or part == [] for part in parts):
        return _merge_messages([], parts)
    if all(isinstance(part, list) for part in parts):
        return [item for part in parts for item in part]
    if all(isinstance(part, dict) and "__type__" not in part for part in parts):
        return {key: value for part in parts for key, value in part.items()}
    return {"__type__": "delta", "base": seed, "writes": list(writes)}
