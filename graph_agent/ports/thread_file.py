"""The format of an exported thread: which rows it holds, how each value is written, and the digest at its end.

The number of a row in its table is not written unless something refers to it, nor is the thread's id, which is
written once at the top. What belongs to a machine (processes, locks) or permits something (grants, permanent
answers, a permissive mode, further folders) is not exported.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, assert_never, cast

__all__ = [
    "FORMAT",
    "PLAIN_NAMES_SINCE",
    "SUB_AGENT",
    "TABLES",
    "VERSION",
    "Column",
    "ContentDigest",
    "InvalidValue",
    "decode_value",
    "encode_value",
]

FORMAT = "graph-agent thread"
VERSION = 3
"""Raised when an older program could no longer read what is written."""
PLAIN_NAMES_SINCE = 3
"""The version from which on tables, columns and fields have their present names."""
SUB_AGENT = "sub_agent"
"""Key in a row of a sub-agent below the thread: the id of its own thread there. Parents come first."""

Kind = Literal["text", "number", "bytes", "json", "json bytes"]
_KINDS: Mapping[str, str] = {
    "text": "text",
    "number": "a whole number",
    "bytes": "bytes in Base64",
    "json": "an object or a list",
    "json bytes": "an object or a list",
}
_TYPES = {"text": str, "bytes": str, "json": dict | list, "json bytes": dict | list}
_NUMBERS = range(-(2**63), 2**63)


class Column(NamedTuple):
    """One value of a row."""

    name: str
    kind: Kind = "text"
    may_be_null: bool = False


class InvalidValue(Exception):
    """A value is not of its kind; the message is the rest of a sentence about it."""


def _columns(text: str) -> tuple[Column, ...]:
    """Columns from words such as `seq:number` or `args:json?`."""
    columns = []
    for word in text.split():
        name, _, kind = word.rstrip("?").partition(":")
        columns.append(Column(name, cast("Kind", kind.replace("-", " ") or "text"), word.endswith("?")))
    return tuple(columns)


TABLES: Mapping[str, tuple[Column, ...]] = {
    "threads": _columns(
        "title workspace model mode created_at updated_at checkpoint_id? next_nodes:json branch:number "
        "turns:number outcome parent_thread? parent_call?"
    ),
    "checkpoints": _columns(
        "checkpoint_ns checkpoint_id parent_checkpoint_id? type checkpoint:bytes metadata:json-bytes"
    ),
    "writes": _columns("checkpoint_ns checkpoint_id task_id task_path idx:number channel type value:bytes"),
    "transcript": _columns("seq:number branch:number message_id role body:json checkpoint_id at"),
    "branches": _columns("branch:number parent_branch:number from_seq:number checkpoint_id at"),
    "call_log": _columns(
        "call_id seq:number tool_name status risk record:json checkpoint_id updated_at abandoned:number"
    ),
    "journal": _columns(
        "call_id attempt:number owner status started_at ended_at? intent:json? outcome:json? reverted:number"
    ),
    "decisions": _columns(
        "call_id attempt:number question args_digest kind args:json? reason by at applied_at? superseded_at"
    ),
    "inbox": _columns("id:number text queued_by queued_at taken_at?"),
    "file_states": _columns("path sha256 at"),
    "rewinds": _columns("id:number checkpoint_id head scope plan:json status at ended_at?"),
    "prune_points": _columns("checkpoint_id branch:number seq:number"),
    "pruned_checkpoints": _columns("checkpoint_id"),
}
"""The rows of a thread by table, in the order in which a file holds them."""


def encode_value(column: Column, stored: Any) -> Any:
    """A stored value as a file holds it.

    Raises:
        InvalidValue: the database holds something else there.
    """
    if stored is None and column.may_be_null:
        return None
    try:
        match column.kind:
            case "bytes":
                if isinstance(stored, bytes):
                    return base64.b64encode(stored).decode()
            case "json" | "json bytes":
                return json.loads(stored)
            case "text" | "number":
                if isinstance(stored, str if column.kind == "text" else int):
                    return stored
            case _ as never:
                assert_never(never)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValue(f"{column.name} is not {_KINDS[column.kind]}") from error
    raise InvalidValue(f"{column.name} is not {_KINDS[column.kind]}")


def decode_value(column: Column, value: Any) -> Any:
    """A value of a file as it is stored.

    Raises:
        InvalidValue: such a column holds no such value.
    """
    if value is None and column.may_be_null:
        return None
    unfit = f"{column.name} is not {_KINDS[column.kind]}"
    is_number = isinstance(value, int) and not isinstance(value, bool) and value in _NUMBERS
    if not is_number if column.kind == "number" else not isinstance(value, _TYPES[column.kind]):
        raise InvalidValue(unfit)
    try:
        match column.kind:
            case "number":
                return value
            case "bytes":
                return base64.b64decode(value, validate=True)
            case "json bytes":
                return json.dumps(value, ensure_ascii=False).encode()
            case "json":
                text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
            case "text":
                text = value
            case _ as never:
                assert_never(never)
        text.encode()
    except ValueError as error:
        is_half = isinstance(error, UnicodeEncodeError)
        raise InvalidValue(f"{column.name} holds half a character" if is_half else unfit) from error
    return text


class ContentDigest:
    """The digest over all values of a file, whatever blanks and line ends it has."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, value: Any) -> None:
        """Add one part: the top, a row, a blob; in the order of the file."""
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        self._digest.update(text.encode() + b"\n")

    def text(self) -> str:
        """The digest of all parts so far."""
        return self._digest.hexdigest()
