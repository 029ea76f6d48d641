"""What is sent to an endpoint: its address, the headers that matter, and the body, which is encoded here alone.

A request of a turn and one that leaves before the model library is loaded (`early_request`) are made by the same
functions, so they are the same bytes. Nothing here loads that library.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from graph_agent.config.settings import ModelSettings
from graph_agent.errors import InternalError
from graph_agent.model.openai.capabilities import Capabilities
from graph_agent.model.openai.tool_call_chunks import replace_surrogates

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage


__all__ = [
    "NO_KEY",
    "EncodedRequest",
    "MessageEncoder",
    "PlainMessage",
    "RequestEncoder",
    "encode_json",
    "encode_request",
]

NO_KEY = "none"
"""Sent where no key is set: the client requires one, local servers ignore it."""

_Tools = Sequence[Mapping[str, Any]]
_Schema = Mapping[str, Any] | None


class PlainMessage(NamedTuple):
    """A text of the program or the user, where the classes for messages are not loaded yet."""

    type: Literal["system", "human"]
    content: str
    name: None = None
    additional_kwargs: Mapping[str, Any] = {}


if TYPE_CHECKING:
    Message = BaseMessage | PlainMessage


class EncodedRequest(NamedTuple):
    """A request as it is sent. The answer to one is an answer to any that is equal."""

    url: str
    headers: Mapping[str, str]
    """Those that an answer may depend on: the key, and what the settings add."""
    body: bytes


def encode_request(model: ModelSettings, body: bytes) -> EncodedRequest:
    """The request with this body to the endpoint of the settings."""
    key = model.api_key.get_secret_value() if model.api_key else NO_KEY
    added = {name: value.get_secret_value() for name, value in model.headers.items()}
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", **added}
    return EncodedRequest(f"{model.endpoint}/chat/completions", headers, body)


class RequestEncoder:
    """Encodes the requests to one model; the same conversation always gives the same bytes."""

    def __init__(self, model: ModelSettings, name: str) -> None:
        self._model = model
        self._name = name
        self._system_role = "developer" if _REASONING_MODEL.match(name) else "system"
        self._messages = MessageEncoder(self._convert)
        self._envelope: tuple[_Tools, Capabilities, _Schema, bool, bytes] | None = None
        """The last request without its messages, and whether the settings give it others."""

    def body(
        self,
        messages: "Sequence[Message]",
        tools: _Tools,
        capabilities: Capabilities,
        schema: _Schema = None,
    ) -> bytes:
        """The body of a request. A text reply should fit the schema."""
        kept = self._envelope
        if kept is None or kept[0] is not tools or kept[1] != capabilities or kept[2] is not schema:
            value = self._fields(tools, capabilities, schema)
            self._envelope = kept = (tools, capabilities, schema, "messages" in value, encode_json(value))
        has_messages, encoded = kept[3:]
        if has_messages:
            return encoded
        return encoded[:-1] + b',"messages":' + self._messages.encode(messages, capabilities) + b"}"

    def _fields(self, tools: _Tools, capabilities: Capabilities, schema: _Schema) -> dict[str, Any]:
        """Everything but the messages, unless the settings give it some."""
        value: dict[str, Any] = {"model": self._name, "stream": capabilities.streaming}
        if capabilities.streaming and capabilities.stream_usage:
            value["stream_options"] = {"include_usage": True}
        if tools:
            value["tools"] = list(tools)
        if self._model.effort != "auto":
            value["reasoning_effort"] = self._model.effort
        value |= self._model.extra_body
        if schema is not None and capabilities.response_schema:
            named = {"name": "answer", "schema": dict(schema)}
            value |= {"response_format": {"type": "json_schema", "json_schema": named}}
        return value

    def _convert(self, messages: "Sequence[Message]", capabilities: Capabilities) -> list[dict[str, Any]]:
        return [_message_fields(message, capabilities, self._system_role) for message in messages]


_REASONING_MODEL = re.compile(r"o\d")
"""For these OpenAI calls the system prompt a developer's message."""


def _message_fields(message: Any, capabilities: Capabilities, system_role: str) -> dict[str, Any]:
    """A message as the JSON object of a request."""
    content = message.content if isinstance(message.content, str) else _content_parts(message.content)
    if message.type == "tool":
        return {"content": content, "role": "tool", "tool_call_id": message.tool_call_id}
    fields: dict[str, Any] = {"content": content} | ({"name": message.name} if message.name else {})
    match message.type:
        case "system":
            return {**fields, "role": message.additional_kwargs.get("__openai_role__", system_role)}
        case "human":
            return {**fields, "role": "user"}
        case "ai":
            return _reply_fields(message, fields, capabilities)
        case kind:
            raise InternalError(f"a message of the kind {kind!r} cannot be sent")


def _reply_fields(message: Any, fields: Mapping[str, Any], capabilities: Capabilities) -> dict[str, Any]:
    """A reply as it is sent back, with what came beside it where the endpoint requires that."""
    calls = [_call_fields(call, json.dumps(call["args"], ensure_ascii=False)) for call in message.tool_calls]
    calls += [_call_fields(call, call["args"]) for call in message.invalid_tool_calls]
    sent = {**fields, "role": "assistant"}
    if calls:
        sent |= {"tool_calls": calls, "content": sent["content"] or None}
    if not capabilities.null_content:
        sent["content"] = sent["content"] or ""
    if capabilities.needs_reasoning:
        sent["reasoning_content"] = str(message.response_metadata.get("reasoning") or "")
    extra = message.response_metadata.get("extra_content") if capabilities.needs_signatures else None
    for position, beside in (extra or {}).items():
        if int(position) < len(calls):
            calls[int(position)]["extra_content"] = beside
    return sent


def _call_fields(call: Mapping[str, Any], arguments: str) -> dict[str, Any]:
    return {"type": "function", "id": call["id"], "function": {"name": call["name"], "arguments": arguments}}


_DROPPED_PARTS = ("tool_use", "thinking", "reasoning_content", "function_call", "code_interpreter_call")
"""Of replies of other providers' APIs; calls and reasoning are sent in fields of their own."""


def _content_parts(parts: Sequence[Any]) -> list[Any]:
    """The parts of a message; files and images in the library's own form become those of the protocol."""
    sent = []
    for part in parts:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind in _DROPPED_PARTS:
            continue
        if kind not in (None, "text", "image_url"):
            from langchain_core.messages import (  # noqa: PLC0415 - parts of other kinds come from other programs
                convert_to_openai_data_block,
                is_data_content_block,
            )

            if is_data_content_block(part):
                sent.append(convert_to_openai_data_block(part))
                continue
        sent.append(part)
    return sent


_KEPT_REQUESTS = 8
"""Between two requests of one conversation there are those of its sub-agents and of the classifier."""


@dataclass(slots=True)
class _Encoded:
    message: "Message"
    content: bytes
    last_request: int = 0


class MessageEncoder:
    """The encoded messages of the last few requests, so that each request only encodes what is new.

    A message is identified by its object, because nothing changes a message that is part of a history.
    """

    def __init__(self, convert: "Callable[[Sequence[Message], Capabilities], Sequence[Mapping[str, Any]]]") -> None:
        self._convert = convert
        self._capabilities: Capabilities | None = None
        self._kept: dict[int, _Encoded] = {}
        """By id() of the message, which is referenced so that no other object can get the same id."""
        self._requests = 0

    def encode(self, messages: "Sequence[Message]", capabilities: Capabilities) -> bytes:
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
        for message in new:
            # A message with parts is made for one request, and may hold images.
            if not isinstance(message.content, str):
                self._kept.pop(id(message), None)
        if self._requests % _KEPT_REQUESTS == 0:
            oldest = self._requests - _KEPT_REQUESTS
            self._kept = {key: one for key, one in self._kept.items() if one.last_request > oldest}
        return b"[" + b",".join([one.content for one in encoded]) + b"]"


def encode_json(value: Any) -> bytes:
    """The value as JSON in UTF-8; surrogates, which UTF-8 cannot encode, are joined or replaced, and NUL is shown.

    Many servers refuse every request with a NUL, and a file that was read would keep it in the history.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    if _NUL in text:
        text = _ESCAPED_NUL.sub(r"\1␀", text)
    return replace_surrogates(text).encode()


_NUL = "\\u0000"
_ESCAPED_NUL = re.compile(r"((?<!\\)(?:\\\\)*)\\u0000")
