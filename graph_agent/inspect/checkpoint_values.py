"""Turns stored checkpoint values into plain JSON values, without importing or calling anything a blob names.

Knows the envelope of LangGraph's msgpack serialiser (extension codes, constructor and arguments) and nothing of the
types inside: a message becomes the dictionary of its fields, any other object a dictionary that names its type.

Rebuilds the values of a checkpoint's channels, those stored as deltas too, without the graph that wrote them.

The line of checkpoints that leads to one, without those of branches that were left.

What counts as a message of a conversation, whichever program stored it.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import ormsgpack

from graph_agent.calls import REPLACES, merge_calls, replace_entries
from graph_agent.errors import DamagedDatabase
from graph_agent.inspect.connection import ReadOnlyDatabase

__all__ = [
    "Snapshot",
    "Stored",
    "are_messages",
    "channel_values",
    "decode",
    "decode_checkpoint",
    "decode_metadata",
    "is_message",
    "line_to",
    "role_of",
]

_KEYWORDS, _PYDANTIC_V1, _PYDANTIC_V2, _ARRAY, _SNAPSHOT = 2, 4, 5, 6, 7
_KNOWN = range(8)
_MESSAGES = "langchain_core.messages."


class Snapshot(NamedTuple):
    """The whole value of a delta channel, as stored now and then in place of its deltas."""

    value: Any


def decode(kind: str, blob: bytes) -> Any:
    """The value behind a type column and its blob, as JSON values; a delta snapshot at any depth stays marked.

    Objects come back as `{"__type__": "module.Name", ...fields}`, messages as their fields alone, bytes and kinds
    that are unknown as their size.

    Raises:
        DamagedDatabase: the blob cannot be read.
    """
    if kind == "null":
        return None
    if kind not in ("msgpack", "json"):
        return {"__type__": kind, "size": len(blob)}
    try:
        value = json.loads(blob) if kind == "json" else _unpack(blob)
        return _plain(value)
    except (ValueError, TypeError, RecursionError) as error:
        raise DamagedDatabase(
            f"a stored value of {len(blob)} bytes cannot be decoded ({error}); the database is torn or was not "
            "written by this program. Put back a backup, or name another file with --db."
        ) from error


def decode_checkpoint(kind: str, blob: bytes) -> dict[str, Any]:
    """A whole checkpoint; of one that is stored in a form nobody else can read, what is known of that form.

    Raises:
        DamagedDatabase: it cannot be read, or is none.
    """
    value = decode(kind, blob)
    if not isinstance(value, dict) or not _is_checkpoint(value):
        raise DamagedDatabase(
            f"a stored checkpoint of {len(blob)} bytes holds no checkpoint; the database is torn."
        )
    return value


def decode_metadata(blob: bytes | None) -> dict[str, Any]:
    """What the engine noted beside a checkpoint.

    Raises:
        DamagedDatabase: it cannot be read, or is none.
    """
    value = decode("json", blob) if blob else {}
    if not isinstance(value, dict) or not isinstance(value.get("step"), int | None):
        raise DamagedDatabase(f"{value!r:.80} stands for the notes about a checkpoint; the database is torn.")
    return value


def _is_checkpoint(value: dict[str, Any]) -> bool:
    """Whether what every reader takes for granted has its shape, as far as it is there."""
    mappings = [value.get(name) or {} for name in ("channel_values", "channel_versions", "versions_seen")]
    if not all(isinstance(one, dict) for one in mappings) or not isinstance(value.get("ts") or "", str):
        return False
    sent, seen = mappings[0].get("__pregel_tasks") or [], mappings[2].values()
    return isinstance(sent, list) and all(isinstance(one or {}, dict) for one in seen)


def _unpack(blob: bytes) -> Any:
    return ormsgpack.unpackb(blob, ext_hook=_describe, option=ormsgpack.OPT_NON_STR_KEYS)


def _describe(code: int, payload: bytes) -> Any:
    if code not in _KNOWN:
        return {"__type__": f"extension {code}", "size": len(payload)}
    content = _unpack(payload)
    if code == _SNAPSHOT:
        return Snapshot(content)
    if code == _ARRAY or not isinstance(content, list) or len(content) < 3:
        return {"__type__": f"extension {code}", "size": len(payload)}
    module, name, argument = str(content[0]), str(content[1]), content[2]
    if code not in (_KEYWORDS, _PYDANTIC_V1, _PYDANTIC_V2) or not isinstance(argument, dict):
        return {"__type__": f"{module}.{name}", "value": argument}
    if module.startswith(_MESSAGES):
        return argument
    return {"__type__": f"{module}.{name}", **argument}


def _plain(value: Any) -> Any:
    match value:
        case Snapshot():
            return Snapshot(_plain(value.value))
        case dict():
            return _described({str(key): _plain(item) for key, item in value.items()})
        case list() | tuple():
            return [_plain(item) for item in value]
        case bytes():
            return {"__type__": "bytes", "size": len(value)}
        case float() if not math.isfinite(value):
            return str(value)
        case _:
            return value


def _described(value: dict[str, Any]) -> dict[str, Any]:
    """The mapping; of an object in the form that stood in JSON before there was msgpack, its fields."""
    match value:
        case {"lc": _, "type": "constructor", "id": [*_, str(name)], "kwargs": dict(fields)}:
            return fields if name.endswith("Message") else {"__type__": name, **fields}
        case _:
            return value


# Found by the links, not by the order of the ids: ids rise within one process only.
_LINE = """WITH RECURSIVE line(id, parent, type, checkpoint, metadata) AS (
    SELECT checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata FROM checkpoints
    WHERE thread_id = ?1 AND checkpoint_ns = '' AND checkpoint_id = ?2
    UNION ALL
    SELECT c.checkpoint_id, c.parent_checkpoint_id, c.type, c.checkpoint, c.metadata
    FROM line CROSS JOIN checkpoints c
    ON c.thread_id = ?1 AND c.checkpoint_ns = '' AND c.checkpoint_id = line.parent)
SELECT id, parent, type, checkpoint, metadata FROM line"""


@dataclass(frozen=True)
class Stored:
    """One checkpoint as it lies in the database."""

    id: str
    parent_id: str | None
    kind: str
    blob: bytes
    told: bytes | None

    @cached_property
    def checkpoint(self) -> dict[str, Any]:
        """The checkpoint itself.

        Raises:
            DamagedDatabase: it cannot be decoded.
        """
        return decode_checkpoint(self.kind, self.blob)

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """Which step made it and how; empty where nothing was noted. Fails as `checkpoint` does."""
        return decode_metadata(self.told)


def line_to(database: ReadOnlyDatabase, thread_id: str, checkpoint_id: str | None) -> Iterator[Stored]:
    """The checkpoint and its ancestors, nearest first, read as they are asked for.

    A line that bites its own tail ends there.
    """
    seen = set()
    for row in database.stream(_LINE, (thread_id, checkpoint_id)):
        stored = Stored(*row)
        if stored.id in seen:
            return
        seen.add(stored.id)
        yield stored


_TYPES = frozenset(("human", "ai", "tool", "system", "function", "chat", "developer", "remove"))
_ROLES = frozenset(("user", "assistant", "tool", "system", "function", "developer"))


def is_message(value: Any) -> bool:
    """Whether it is a message: of LangChain, or one that says its role."""
    if not isinstance(value, dict) or "content" not in value:
        return False
    kind = str(value.get("type")).removesuffix("MessageChunk").lower()
    return kind in _TYPES or value.get("role") in _ROLES


def are_messages(value: Any) -> bool:
    """Whether it is a conversation."""
    return isinstance(value, list) and bool(value) and all(map(is_message, value))


def role_of(message: dict[str, Any]) -> str:
    """Who says it, in the words of the model's protocol."""
    kind = str(message.get("type") or message.get("role")).removesuffix("MessageChunk").lower()
    return {"human": "user", "ai": "assistant"}.get(kind, kind)


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
        return replace_entries(merged, replaced, _key_of(message), message)
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
