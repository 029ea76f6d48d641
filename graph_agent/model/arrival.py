"""One reply while it arrives, streamed or whole: what to show of it, and the message it is in the end.

Knows neither how it travels nor what its calls do.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata

from graph_agent.model.arguments import read_arguments, repaired
from graph_agent.model.failures import BrokenReply, EmptyReply, ServerSaid
from graph_agent.model.fragments import Fragments
from graph_agent.model.thinking import Piece, ThinkingFilter
from graph_agent.ports import Delta

__all__ = ["DONE", "Arrival"]

DONE = "[DONE]"

_OUTPUT_LIMIT = "the model's output limit"
_CUT = {
    "length": _OUTPUT_LIMIT,
    "max_tokens": _OUTPUT_LIMIT,
    "content_filter": "the provider's content filter",
}
"""Reasons to finish that leave the reply incomplete, even where the arguments of its newest call look whole."""

_CUT_OFF = (
    "the reply was cut off at the output limit before this call was complete; send it again, in smaller parts"
)
_NAME = re.compile(r"[^A-Za-z0-9_-]")
_TOKENS = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens", "total_tokens": "total_tokens"}


class Arrival:
    """Takes the payloads of one answer in."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._calls = Fragments()
        self._thinking = ThinkingFilter()
        self._finish = ""
        self._is_done = False
        self._usage: Any = None
        self._model = ""

    def add(self, payload: str) -> Iterator[Delta]:
        """Take in one event of a stream, or a whole body; gives what is new to show.

        Raises:
            BrokenReply: the payload is no JSON object.
            ServerSaid: it reports an error.
        """
        if payload.strip() == DONE:
            self._is_done = True
            return
        body = _object(payload)
        self._usage = body.get("usage") or self._usage
        self._model = str(body.get("model") or self._model)
        for choice in _mappings(body.get("choices"))[:1]:
            self._is_done = self._is_done or "message" in choice
            # A reason that says "cut" stands, whatever a later chunk says.
            self._finish = (
                self._finish if self._finish in _CUT else str(choice.get("finish_reason") or self._finish)
            )
            for part in _mappings(choice.get("message") or choice.get("delta")):
                yield from self._part(part, is_whole="message" in choice)

    def end(self) -> Iterator[Delta]:
        """What was held back until the end."""
        yield from self._shown(self._thinking.flush())
        if self._text and not self._calls.calls and (limit := _CUT.get(self._finish)):
            yield Delta("note", f"The reply was cut off by {limit}; what is shown is not all of it.")

    def message(self, tools: Sequence[Mapping[str, Any]]) -> AIMessage:
        """The whole message; call after `end`.

        Raises:
            BrokenReply: it ended before it was whole.
            EmptyReply: it holds neither text nor calls.
        """
        if not self._finish and not self._is_done:
            raise BrokenReply("the connection closed in the middle")
        text = repaired("".join(self._text))
        calls, complaints = self._read_calls([str(tool["function"]["name"]) for tool in tools])
        if not calls and not text.strip():
            raise EmptyReply(f"finish reason: {self._finish or 'none'}")
        metadata: dict[str, Any] = {"model_name": self._model, "finish_reason": self._finish}
        if complaints:
            metadata["unusable_arguments"] = complaints
        return AIMessage(
            text if text.strip() else "",
            tool_calls=calls,
            response_metadata=metadata,
            usage_metadata=_usage(self._usage),
        )

    def _part(self, part: Mapping[str, Any], *, is_whole: bool) -> Iterator[Delta]:
        if reasoning := part.get("reasoning_content") or part.get("reasoning"):
            yield Delta("reasoning", repaired(str(reasoning)))
        yield from self._shown(self._thinking.feed(_plain(part.get("content")) + _plain(part.get("refusal"))))
        for call in _calls_in(part):
            added = self._calls.add_whole(call) if is_whole else self._calls.add(call)
            if added is not None:
                position, name, piece = added
                yield Delta("tool_call", repaired(piece), position, name.strip())

    def _shown(self, pieces: Sequence[Piece]) -> Iterator[Delta]:
        for kind, text in pieces:
            if kind == "text":
                self._text.append(text)
            yield Delta(kind, repaired(text))

    def _read_calls(self, offered: Sequence[str]) -> tuple[list[dict[str, Any]], dict[str, str]]:
        calls: list[dict[str, Any]] = []
        complaints: dict[str, str] = {}
        for position, parts in enumerate(self._calls.calls):
            arguments = read_arguments(parts.arguments)
            value, complaint = arguments.value, arguments.complaint
            if self._finish in _CUT and position == len(self._calls.calls) - 1:
                value, complaint = {}, _CUT_OFF
            if complaint:
                complaints[str(position)] = complaint
            calls.append({"name": _name(parts.name, offered), "args": value, "id": parts.call_id or None})
        return calls, complaints


def _object(payload: str) -> dict[str, Any]:
    try:
        body = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise BrokenReply(f"not JSON: {error}") from error
    if not isinstance(body, dict):
        raise BrokenReply("not a JSON object")
    if body.get("error"):
        raise ServerSaid(body["error"])
    return body


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a field that should be a list of them, or be one."""
    several = value if isinstance(value, list) else [value]
    return [entry for entry in several if isinstance(entry, Mapping)]


def _calls_in(part: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The calls of a message or a piece of one; the single call of the older protocol has a field of its own."""
    older = [{"function": function} for function in _mappings(part.get("function_call"))]
    return _mappings(part.get("tool_calls")) or _mappings(older)


def _plain(content: Any) -> str:
    """Text of a content field, which some servers send as a list of parts."""
    match content:
        case str():
            return content
        case list():
            return "".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
        case _:
            return ""


def _name(name: str, offered: Sequence[str]) -> str:
    """The offered name where blanks or letter case alone differ; else a name that servers take back."""
    bare = name.strip()
    same = [known for known in offered if known.casefold() == bare.casefold()]
    if bare in offered or len(same) != 1:
        return _NAME.sub("_", bare)[:64] or "unnamed"
    return same[0]


def _usage(told: Any) -> UsageMetadata | None:
    if not isinstance(told, Mapping):
        return None
    counts = {ours: told[theirs] for ours, theirs in _TOKENS.items() if isinstance(told.get(theirs), int)}
    if not counts:
        return None
    total = counts.get("input_tokens", 0) + counts.get("output_tokens", 0)
    whole: dict[str, Any] = {"input_tokens": 0, "output_tokens": 0, "total_tokens": total, **counts}
    for details in _mappings(told.get("prompt_tokens_details")):
        if isinstance(cached := details.get("cached_tokens"), int):
            whole["input_token_details"] = {"cache_read": cached}
    return cast("UsageMetadata", whole)
