"""What a checkpoint may hold: JSON values, chat messages, and the few values that LangGraph itself writes.

Writing refuses everything else, so that a node that puts a rich object into the state fails at once. Reading
builds only the types of a fixed table: a crafted row neither runs code nor imports a module.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar, cast

import ormsgpack
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Interrupt, Overwrite, Send

from graph_agent.errors import InternalError
from graph_agent.ports.stored_text import storable
from graph_agent.storage.decoder import FIELDS, MESSAGE, SEND, SNAPSHOT, Decoder, UnreadableValue

__all__ = ["BoundedCache", "MessageDecoder", "StrictSerializer", "unwrap_value", "wrap_snapshot"]

K = TypeVar("K")
V = TypeVar("V")

_MESSAGES: Mapping[tuple[str, str], type[BaseMessage]] = {
    (kind.__module__, kind.__name__): kind
    for kind in (AIMessage, AIMessageChunk, HumanMessage, RemoveMessage, SystemMessage, ToolMessage)
}
_RECORDS: Mapping[tuple[str, str], type[Any]] = {
    (kind.__module__, kind.__name__): kind for kind in (Interrupt, Overwrite)
}
_CACHED_BYTES = 4 * 1024 * 1024
"""Bytes of the most recently read messages that are kept: more than a context window holds."""
_PACK_OPTIONS = (
    ormsgpack.OPT_NON_STR_KEYS
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_UUID
    | ormsgpack.OPT_REPLACE_SURROGATES
)


class StrictSerializer(JsonPlusSerializer):
    """LangGraph's wire format, narrowed to what this program writes."""

    def __init__(self) -> None:
        super().__init__(allowed_msgpack_modules=None)
        self.decoder = MessageDecoder()

    def with_msgpack_allowlist(self, extra_allowlist: Iterable[tuple[str, ...] | type]) -> "StrictSerializer":  # noqa: ARG002 - the name is LangGraph's
        """Return self: a graph's schema never widens what may be read."""
        return self

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Type tag and bytes.

        Raises:
            InternalError: the value holds something other than JSON, messages and LangGraph's own values.
        """
        if obj is None:
            return "null", b""
        return ("bytes", obj) if isinstance(obj, bytes) else ("msgpack", _pack(obj))

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """The value of tag and bytes, with the names that were stored. See `MessageDecoder.value` for errors."""
        return self.decoder.value(*data)


class MessageDecoder(Decoder):
    """Decodes to messages and to LangGraph's own values; refuses every other type."""

    def __init__(self) -> None:
        self._messages: BoundedCache[bytes, BaseMessage] = BoundedCache(_CACHED_BYTES)
        self._refusal = ""

    def value(self, kind: str, content: bytes) -> Any:
        """See `Decoder.value`.

        Raises:
            DamagedDatabase: a tag or type that this program never writes, or damaged bytes.
        """
        match kind:
            case "null":
                return None
            case "bytes":
                return content
            case "msgpack":
                self._refusal = ""
                try:
                    return self.unpack(content)
                except (ValueError, TypeError, KeyError, IndexError) as error:
                    problem = self._refusal or f"cannot be read: {error}"
                    raise UnreadableValue(f"A stored value {problem}", problem) from error
            case _:
                problem = f"has the type {kind!r}, which this program never writes"
                raise UnreadableValue(f"A stored value {problem}.", problem)

    def extension(self, code: int, content: bytes) -> Any:
        if code == MESSAGE and (known := self._messages.get(content)) is not None:
            return known
        stored = self.unpack(content)
        if code == SNAPSHOT:
            return _DeltaSnapshot(stored)
        kind, argument = (stored[0], stored[1]), stored[2]
        if code == MESSAGE and kind in _MESSAGES:
            # The same bytes give the same object each time: no message is changed once it is in a history, and
            # whoever serialized or counted it recognizes it when the thread is read again.
            return self._messages.put(content, _MESSAGES[kind](**argument), len(content))
        argument = self.renamed_argument(kind, argument)
        if code == SEND and kind == (Send.__module__, Send.__name__):
            return Send(*argument[:2])
        if code == FIELDS and kind in _RECORDS:
            return _RECORDS[kind](**argument)
        # The unpacker hides what its hook raises.
        self._refusal = f"has the type {'.'.join(map(str, kind))}, which this program never writes"
        raise ValueError(self._refusal)


def unwrap_value(stored: Any) -> Any:
    """The plain value of a channel, or of a write to it, out of its snapshot or overwrite."""
    return stored.value if isinstance(stored, _DeltaSnapshot | Overwrite) else stored


def wrap_snapshot(value: Any) -> Any:
    """A value as a delta channel stores it completely."""
    return _DeltaSnapshot(value)


class BoundedCache(Generic[K, V]):
    """Values by key up to a total weight; the least recently used are dropped first."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._weight = 0
        self._entries: dict[K, tuple[V, int]] = {}

    def get(self, key: K) -> V | None:
        """The value, which is now the most recently used."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        self._entries[key] = entry
        return entry[0]

    def put(self, key: K, value: V, weight: int) -> V:
        """Keep the value; one that alone exceeds the capacity is not kept."""
        _, before = self._entries.pop(key, (None, 0))
        self._weight -= before
        if weight <= self._capacity:
            self._entries[key] = (value, weight)
            self._weight += weight
        while self._weight > self._capacity:
            oldest = next(iter(self._entries))
            self._weight -= self._entries.pop(oldest)[1]
        return value


def _pack(value: Any) -> bytes:
    try:
        return ormsgpack.packb(value, default=_encode, option=_PACK_OPTIONS)
    except ormsgpack.MsgpackEncodeError as error:
        # The packer replaces lone surrogates in values only; a model may also put them into the names of arguments.
        if "surrogates" in str(error):
            return ormsgpack.packb(_with_storable_keys(value), default=_encode, option=_PACK_OPTIONS)
        raise InternalError(f"the state may hold JSON values and messages only: {error}") from error


def _with_storable_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            storable(key) if isinstance(key, str) else key: _with_storable_keys(one) for key, one in value.items()
        }
    if type(value) in (list, tuple):
        return [_with_storable_keys(one) for one in value]
    return value


def _encode(value: Any) -> Any:
    kind = (type(value).__module__, type(value).__name__)
    if isinstance(value, _DeltaSnapshot):
        return ormsgpack.Ext(SNAPSHOT, _pack(value.value))
    if kind in _MESSAGES:
        return ormsgpack.Ext(MESSAGE, _pack((*kind, value.model_dump(), "model_validate_json")))
    if isinstance(value, Send):
        return ormsgpack.Ext(SEND, _pack((*kind, (value.node, value.arg))))
    if kind in _RECORDS:
        names = cast("Mapping[str, Any]", type(value).__dataclass_fields__)
        return ormsgpack.Ext(FIELDS, _pack((*kind, {name: getattr(value, name) for name in names})))
    if isinstance(value, BaseException):
        # LangGraph stores what a task raised; nothing reads it back as an exception.
        return repr(value)
    raise TypeError(f"{kind[0]}.{kind[1]} is neither; turn it into plain values in the node")
