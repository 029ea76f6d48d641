"""Rebuilds the values of a checkpoint's channels, deltas included, without the graph that wrote them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graph_agent.calls import REPLACES, merge_calls, replace_entries
from graph_agent.ports.checkpoint_values import are_messages, is_message
from graph_agent.ports.read_store import ReadStore, StoredCheckpoint

__all__ = ["channel_values"]

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
