"""Turns stored checkpoint values into plain JSON values, without importing or calling anything a blob names.

Knows the envelope of LangGraph's msgpack serialiser (extension codes, constructor and arguments) and nothing of the
types inside: a message becomes the dictionary of its fields, any other object a dictionary that names its type.
"""

import json
import math
from typing import Any, NamedTuple

import ormsgpack

from graph_agent.errors import DamagedDatabase

__all__ = ["Snapshot", "decode", "decode_checkpoint", "decode_metadata"]

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
