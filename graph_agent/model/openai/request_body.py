"""Messages as the bytes they are sent as, kept from one request to the next: only what is new is written again.

Knows neither endpoint nor client. A message is known by the very object it is, for nothing changes one that stands
in a history; nothing is kept of what some requests in a row did not hold.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graph_agent.model.openai.capabilities import Capabilities
from graph_agent.model.openai.tool_call_chunks import repaired

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage


__all__ = ["EncodedMessages", "encoded"]

_KEPT_FOR = 8
"""Requests: between two of one conversation there are those of its sub-agents and of the judge."""
Convert = Callable[["Sequence[BaseMessage]", Capabilities], Sequence[Mapping[str, Any]]]
"""Turns messages into what stands for each in a request."""


class EncodedMessages:
    """The messages of the last few requests."""

    def __init__(self, convert: Convert) -> None:
        self._convert = convert
        self._dialect: Capabilities | None = None
        self._kept: dict[int, _Kept] = {}
        """By identity of the message, which is held so that no other one can get it."""
        self._requests = 0

    def of(self, messages: "Sequence[BaseMessage]", dialect: Capabilities) -> bytes:
        """The JSON list of them."""
        if dialect != self._dialect:
            self._dialect, self._kept = dialect, {}
        self._requests += 1
        new = [message for message in messages if id(message) not in self._kept]
        for message, sent in zip(new, self._convert(new, dialect) if new else (), strict=True):
            self._kept[id(message)] = _Kept(message, encoded(sent))
        content = b",".join([self._taken(message) for message in messages])
        self._forget(new)
        return b"[" + content + b"]"

    def _taken(self, message: "BaseMessage") -> bytes:
        kept = self._kept[id(message)]
        kept.request = self._requests
        return kept.content

    def _forget(self, new: "Sequence[BaseMessage]") -> None:
        for message in new:
            # A message of parts is made for one request, and may hold images.
            if not isinstance(message.content, str):
                self._kept.pop(id(message), None)
        if self._requests % _KEPT_FOR == 0:
            oldest = self._requests - _KEPT_FOR
            self._kept = {key: kept for key, kept in self._kept.items() if kept.request > oldest}


@dataclass(slots=True)
class _Kept:
    message: "BaseMessage"
    content: bytes
    request: int = 0
    """The last one that it was part of."""


def encoded(value: Any) -> bytes:
    """The value as JSON in UTF-8. Surrogate halves, which UTF-8 has no place for, are joined or replaced."""
    text = json.dumps(_encodable(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode()


def _encodable(value: Any) -> Any:
    match value:
        case str():
            return repaired(value)
        case list() | tuple():
            return [_encodable(item) for item in value]
        case dict():
            return {key: _encodable(item) for key, item in value.items()}
        case _:
            return value
