"""Encodes messages as the bytes of a request, and keeps them, so that each request only encodes what is new."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graph_agent.model.openai.capabilities import Capabilities
from graph_agent.model.openai.tool_call_chunks import replace_surrogates

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage


__all__ = ["MessageEncoder", "encode_json"]

_KEPT_REQUESTS = 8
"""Between two requests of one conversation there are those of its sub-agents and of the classifier."""
Convert = Callable[["Sequence[BaseMessage]", Capabilities], Sequence[Mapping[str, Any]]]
"""Turns messages into the JSON objects of a request."""


class MessageEncoder:
    """The encoded messages of the last few requests.

    A message is identified by its object, because nothing changes a message that is part of a history.
    """

    def __init__(self, convert: Convert) -> None:
        self._convert = convert
        self._capabilities: Capabilities | None = None
        self._kept: dict[int, _Encoded] = {}
        """By id() of the message, which is referenced so that no other object can get the same id."""
        self._requests = 0

    def encode(self, messages: "Sequence[BaseMessage]", capabilities: Capabilities) -> bytes:
        """The JSON list of the messages."""
        if capabilities != self._capabilities:
            self._capabilities, self._kept = capabilities, {}
        self._requests += 1
        new = [message for message in messages if id(message) not in self._kept]
        for message, converted in zip(new, self._convert(new, capabilities) if new else (), strict=True):
            self._kept[id(message)] = _Encoded(message, encode_json(converted))
        encoded = [self._kept[id(message)] for message in messages]
        for one in encoded:
            one.last_request = self._requests
        self._forget(new)
        return b"[" + b",".join([one.content for one in encoded]) + b"]"

    def _forget(self, new: "Sequence[BaseMessage]") -> None:
        for message in new:
            # A message with parts is made for one request, and may hold images.
            if not isinstance(message.content, str):
                self._kept.pop(id(message), None)
        if self._requests % _KEPT_REQUESTS == 0:
            oldest = self._requests - _KEPT_REQUESTS
            self._kept = {key: one for key, one in self._kept.items() if one.last_request > oldest}


@dataclass(slots=True)
class _Encoded:
    message: "BaseMessage"
    content: bytes
    last_request: int = 0


def encode_json(value: Any) -> bytes:
    """The value as JSON in UTF-8; surrogates, which UTF-8 cannot encode, are joined or replaced."""
    text = json.dumps(_encodable(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode()


def _encodable(value: Any) -> Any:
    match value:
        case str():
            return replace_surrogates(value)
        case list() | tuple():
            return [_encodable(item) for item in value]
        case dict():
            return {key: _encodable(item) for key, item in value.items()}
        case _:
            return value
