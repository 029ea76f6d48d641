"""Decodes what LangGraph's msgpack serializer stored, without importing or calling anything a stored value names.

`PlainDecoder` gives JSON values: a message becomes the dictionary of its fields, any other object a dictionary
that names its type. The serializer of the saver decodes with the same code and builds messages instead.
"""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

from graph_agent.errors import DamagedDatabase
from graph_agent.storage.legacy_names import (
    current_checkpoint,
    current_interrupt,
    current_task_input,
    current_value,
)

__all__ = ["FIELDS", "MESSAGE", "SEND", "SNAPSHOT", "Decoder", "PlainDecoder", "Snapshot", "UnreadableValue"]

SEND, FIELDS, MESSAGE, SNAPSHOT = 1, 2, 5, 7
"""Codes of the extension types, as LangGraph's serializer numbers them."""
_PYDANTIC_V1, _ARRAY = 4, 6
_KNOWN = range(8)
_MESSAGES = "langchain_core.messages."
_SEND_TYPE = ("langgraph.types", "Send")
_INTERRUPT_TYPE = ("langgraph.types", "Interrupt")


class UnreadableValue(DamagedDatabase):
    """A stored value cannot be decoded; `problem` is the rest of a sentence about it."""

    def __init__(self, message: str, problem: str) -> None:
        super().__init__(message)
        self.problem = problem


class Snapshot(NamedTuple):
    """The complete value of a delta channel, stored from time to time in place of its deltas."""

    value: Any


class Decoder(ABC):
    """Unpacks values; subclasses say what an extension becomes."""

    def checkpoint(self, kind: str, content: bytes) -> Any:
        """A decoded checkpoint, with today's names of channels and fields."""
        value = self.value(kind, content)
        return current_checkpoint(value) if isinstance(value, dict) else value

    def write(self, channel: str, kind: str, content: bytes) -> Any:
        """A decoded write to a channel, with today's names of fields."""
        return current_value(channel, self.value(kind, content))

    @abstractmethod
    def value(self, kind: str, content: bytes) -> Any:
        """The value behind a type column and its content.

        Raises:
            DamagedDatabase: it cannot be decoded.
        """

    @abstractmethod
    def extension(self, code: int, content: bytes) -> Any:
        """The value of an extension type."""

    def unpack(self, content: bytes) -> Any:
        """Unpack msgpack bytes."""
        import ormsgpack  # noqa: PLC0415 - lists decode nothing

        return ormsgpack.unpackb(content, ext_hook=self.extension, option=ormsgpack.OPT_NON_STR_KEYS)

    @staticmethod
    def renamed_argument(kind: tuple[str, str], argument: Any) -> Any:
        """The constructor's argument of an object of LangGraph's, with today's names of fields."""
        if kind == _SEND_TYPE and isinstance(argument, list) and len(argument) > 1:
            return [argument[0], current_task_input(argument[1]), *argument[2:]]
        if kind == _INTERRUPT_TYPE and isinstance(argument, dict) and "value" in argument:
            return {**argument, "value": current_interrupt(argument["value"])}
        return argument


class PlainDecoder(Decoder):
    """Decodes to JSON values; a delta snapshot at any depth stays marked.

    Objects become `{"__type__": "module.Name", ...fields}`, messages their fields alone, bytes and unknown kinds
    their size.
    """

    def checkpoint(self, kind: str, content: bytes) -> dict[str, Any]:
        """A decoded checkpoint; of one in a form that only its own program can read, what is known of that form.

        Raises:
            DamagedDatabase: it cannot be decoded, or is no checkpoint.
        """
        value = super().checkpoint(kind, content)
        if not isinstance(value, dict) or not _is_checkpoint(value):
            raise DamagedDatabase(
                f"A stored checkpoint of {len(content)} bytes is not a checkpoint: the database is damaged."
            )
        return value

    def metadata(self, content: bytes | None) -> dict[str, Any]:
        """What LangGraph noted beside a checkpoint.

        Raises:
            DamagedDatabase: it cannot be decoded, or is no such note.
        """
        value = self.value("json", content) if content else {}
        if not isinstance(value, dict) or not isinstance(value.get("step"), int | None):
            raise DamagedDatabase(
                f"The metadata {value!r:.80} of a checkpoint cannot be read: the database is damaged."
            )
        return value

    def value(self, kind: str, content: bytes) -> Any:
        if kind == "null":
            return None
        if kind not in ("msgpack", "json"):
            return {"__type__": kind, "size": len(content)}
        try:
            return _plain(json.loads(content) if kind == "json" else self.unpack(content))
        except (ValueError, TypeError, RecursionError) as error:
            problem = f"cannot be decoded ({error})"
            raise UnreadableValue(
                f"A stored value of {len(content)} bytes {problem}: the database is damaged, or another program "
                "wrote it. Restore a backup, or name another file with --db.",
                problem,
            ) from error

    def extension(self, code: int, content: bytes) -> Any:
        unknown = {"__type__": f"extension {code}", "size": len(content)}
        if code not in _KNOWN:
            return unknown
        value = self.unpack(content)
        if code == SNAPSHOT:
            return Snapshot(value)
        if code == _ARRAY or not isinstance(value, list) or len(value) < 3:
            return unknown
        module, name = str(value[0]), str(value[1])
        argument = self.renamed_argument((module, name), value[2])
        if code not in (FIELDS, _PYDANTIC_V1, MESSAGE) or not isinstance(argument, dict):
            return {"__type__": f"{module}.{name}", "value": argument}
        return argument if module.startswith(_MESSAGES) else {"__type__": f"{module}.{name}", **argument}


def _is_checkpoint(value: dict[str, Any]) -> bool:
    """Whether the parts that every reader relies on have their shape, as far as they are there."""
    mappings = [value.get(name) or {} for name in ("channel_values", "channel_versions", "versions_seen")]
    if not all(isinstance(one, dict) for one in mappings) or not isinstance(value.get("ts") or "", str):
        return False
    sent, seen = mappings[0].get("__pregel_tasks") or [], mappings[2].values()
    return isinstance(sent, Sequence) and all(isinstance(one or {}, dict) for one in seen)


def _plain(value: Any) -> Any:
    match value:
        case Snapshot():
            return Snapshot(_plain(value.value))
        case {"lc": _, "type": "constructor", "id": [*_, str(name)], "kwargs": dict(fields)}:
            # An object that was stored as JSON, as LangChain did before msgpack.
            plain = {str(key): _plain(item) for key, item in fields.items()}
            return plain if name.endswith("Message") else {"__type__": name, **plain}
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case bytes():
            return {"__type__": "bytes", "size": len(value)}
        case _:
            return str(value) if isinstance(value, float) and not math.isfinite(value) else value
