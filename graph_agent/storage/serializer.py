"""What a checkpoint may hold: JSON values, chat messages, and the few values the graph framework itself writes.

Writing refuses everything else, so that a node that lets a rich object into the state is told at once. Reading
builds only the types named here, from a fixed table: a crafted row neither runs code nor imports a module.

What was used last, up to a weight in all.
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

from graph_agent.errors import DamagedDatabase, InternalError
from graph_agent.storage.json_text import storable

__all__ = ["BoundedCache", "StrictSerializer", "unwrap_value", "wrap_snapshot"]

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """Values by key; those that were not asked for longest go first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._weight = 0
        self._kept: dict[K, tuple[V, int]] = {}

    def get(self, key: K) -> V | None:
        """The value, which from now on is the one used last."""
        kept = self._kept.pop(key, None)
        if kept is None:
            return None
        self._kept[key] = kept
        return kept[0]

    def put(self, key: K, value: V, weight: int) -> V:
        """Keep the value, at the cost of others; one that weighs more than all may is not kept."""
        _, before = self._kept.pop(key, (None, 0))
        self._weight -= before
        if weight <= self._most:
            self._kept[key] = (value, weight)
            self._weight += weight
        while self._weight > self._most:
            oldest = next(iter(self._kept))
            self._weight -= self._kept.pop(oldest)[1]
        return value


_SEND, _FIELDS, _MESSAGE, _SNAPSHOT = 1, 2, 5, 7
"""Codes of the extension types, as the graph framework's own serializer numbers them."""

_MESSAGES: Mapping[tuple[str, str], type[BaseMessage]] = {
    (kind.__module__, kind.__name__): kind
    for kind in (AIMessage, AIMessageChunk, HumanMessage, RemoveMessage, SystemMessage, ToolMessage)
}
_RECORDS: Mapping[tuple[str, str], type[Any]] = {
    (kind.__module__, kind.__name__): kind for kind in (Interrupt, Overwrite)
}
MOST_REMEMBERED = 4 * 1024 * 1024
"""Bytes of the messages that were read last and are kept: more than a live window holds."""
_PACK_OPTIONS = (
    ormsgpack.OPT_NON_STR_KEYS
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_UUID
    | ormsgpack.OPT_REPLACE_SURROGATES
)


class StrictSerializer(JsonPlusSerializer):
    """The framework's wire format, narrowed to what this program writes."""

    def __init__(self) -> None:
        super().__init__(allowed_msgpack_modules=None)
        self._read: BoundedCache[bytes, BaseMessage] = BoundedCache(MOST_REMEMBERED)

    def with_msgpack_allowlist(self, extra_allowlist: Iterable[tuple[str, ...] | type]) -> "StrictSerializer":  # noqa: ARG002 - the name is the framework's
        """Itself: a graph's schema never widens what may be read."""
        return self

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Type tag and bytes.

        Raises:
            InternalError: the value holds something that is not JSON, a message or the framework's own.
        """
        if obj is None:
            return "null", b""
        if isinstance(obj, bytes):
            return "bytes", obj
        return "msgpack", _pack(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """The value behind tag and bytes.

        Raises:
            DamagedDatabase: a tag or type that this program never writes, or torn bytes.
        """
        tag, content = data
        match tag:
            case "null":
                return None
            case "bytes":
                return content
            case "msgpack":
                return _Reader(self._read).read(content)
            case _:
                raise DamagedDatabase(f"a stored value has the type {tag!r}, which this program never writes")


def unwrap_value(stored: Any) -> Any:
    """The plain value of a channel, or of a write to one, taken out of its wrapping where it has one."""
    return stored.value if isinstance(stored, _DeltaSnapshot | Overwrite) else stored


def wrap_snapshot(value: Any) -> Any:
    """A value as a delta channel stores it whole."""
    return _DeltaSnapshot(value)


def _pack(value: Any) -> bytes:
    try:
        return _packed(value)
    except ormsgpack.MsgpackEncodeError as error:
        # The packer replaces lone surrogates in values only; a model may also put them into the names of arguments.
        if "surrogates" in str(error):
            return _packed(_with_storable_keys(value))
        raise InternalError(f"the state may hold JSON values and messages only: {error}") from error


def _packed(value: Any) -> bytes:
    return ormsgpack.packb(value, default=_encode, option=_PACK_OPTIONS)


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
        return ormsgpack.Ext(_SNAPSHOT, _pack(value.value))
    if kind in _MESSAGES:
        return ormsgpack.Ext(_MESSAGE, _pack((*kind, value.model_dump(), "model_validate_json")))
    if isinstance(value, Send):
        return ormsgpack.Ext(_SEND, _pack((*kind, (value.node, value.arg))))
    if kind in _RECORDS:
        fields = {name: getattr(value, name) for name in _field_names(value)}
        return ormsgpack.Ext(_FIELDS, _pack((*kind, fields)))
    if isinstance(value, BaseException):
        # The framework stores what a task raised; nobody reads it back as an exception.
        return repr(value)
    raise TypeError(f"{kind[0]}.{kind[1]} is neither; turn it into plain values in the node")


def _field_names(value: Any) -> Iterable[str]:
    return cast("Mapping[str, Any]", type(value).__dataclass_fields__)


class _Reader:
    """Unpacks one value. The unpacker hides what its hook raises, so the reader keeps the words itself."""

    def __init__(self, known: "BoundedCache[bytes, BaseMessage]") -> None:
        self._known = known
        self._refusal = ""

    def read(self, content: bytes) -> Any:
        try:
            return self._unpack(content)
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise DamagedDatabase(f"a stored value {self._refusal or f'cannot be read: {error}'}") from error

    def _unpack(self, content: bytes) -> Any:
        return ormsgpack.unpackb(content, ext_hook=self._revive, option=ormsgpack.OPT_NON_STR_KEYS)

    def _revive(self, code: int, content: bytes) -> Any:
        if code == _MESSAGE and (known := self._known.get(content)) is not None:
            return known
        stored = self._unpack(content)
        if code == _SNAPSHOT:
            return _DeltaSnapshot(stored)
        module, name, payload = stored[:3]
        kind = (module, name)
        if code == _MESSAGE and kind in _MESSAGES:
            # The same bytes give the same object each time: nothing changes a message that stands in a history, and
            # who has written one out or weighed it knows it again when the thread is read once more.
            return self._known.put(content, _MESSAGES[kind](**payload), len(content))
        if code == _SEND and kind == (Send.__module__, Send.__name__):
            return Send(*payload[:2])
        if code == _FIELDS and kind in _RECORDS:
            return _RECORDS[kind](**payload)
        self._refusal = f"has the type {module}.{name}, which this program never writes"
        raise ValueError(self._refusal)
