"""One reply while it arrives, streamed or whole: what to show of it, and the message it is in the end.

Knows neither how it travels nor what its calls do.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata

from graph_agent.model.arguments import Arguments, read_arguments, repaired
from graph_agent.model.content import plain_text, thinking_text
from graph_agent.model.failures import BrokenReply, EmptyReply, ServerSaid
from graph_agent.model.finish import broke_off, cut_by
from graph_agent.model.fragments import Fragments
from graph_agent.model.holding import HeldText
from graph_agent.model.thinking import Piece, ThinkingFilter, without_thinking
from graph_agent.model.written import written_calls
from graph_agent.ports import Delta

__all__ = ["DONE", "Arrival"]

DONE = "[DONE]"

_MOST_REASONING = 100_000
"""Characters of thinking that are kept with a message; some servers want it back."""

_TOO_LONG = "the model's output limit"
_NAME = re.compile(r"[^A-Za-z0-9_-]")
_TOKENS = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens", "total_tokens": "total_tokens"}


class Arrival:
    """Takes the payloads of one answer in."""

    def __init__(self, offered: Sequence[str] = (), *, calls_are_text: bool = False) -> None:
        self._offered = offered
        """Names of the tools on offer."""
        self._held = HeldText() if calls_are_text else None
        self._text: list[str] = []
        self._calls = Fragments()
        self._reasoning: list[str] = []
        self._thinking = ThinkingFilter()
        self._finish = ""
        self._choice: Any = None
        """What the server calls the position of the one choice that is the reply."""
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
        for choice in self._chosen(body):
            self._is_done = self._is_done or "message" in choice
            # A reason that says "cut" stands, whatever a later chunk says.
            self._finish = (
                self._finish if cut_by(self._finish) else str(choice.get("finish_reason") or self._finish)
            )
            for part in _mappings(choice.get("message") or choice.get("delta")):
                yield from self._part(part, is_whole="message" in choice)

    def end(self) -> Iterator[Delta]:
        """What was held back until the end."""
        yield from self._shown(self._thinking.flush())
        text, calls = self._taken_apart()
        if self._held and (rest := self._held.rest(text)):
            yield Delta("text", rest)
        if text and not calls and (limit := cut_by(self._finish)):
            yield Delta("note", f"The reply was cut off by {limit}; what is shown is not all of it.")

    def message(self) -> AIMessage:
        """The whole message; call after `end`.

        Raises:
            BrokenReply: it ended before it was whole.
            EmptyReply: it holds neither text nor calls.
        """
        if not self._finish and not self._is_done:
            raise BrokenReply("the connection closed in the middle")
        if broke_off(self._finish):
            raise BrokenReply(f"finish reason: {self._finish}")
        text, arrived = self._taken_apart()
        calls, complaints = self._read_calls(arrived)
        if not calls and not text.strip():
            raise EmptyReply(f"finish reason: {self._finish or 'none'}")
        told = {
            "unusable_arguments": complaints,
            "reasoning": repaired("".join(self._reasoning))[:_MOST_REASONING],
            "extra_content": {str(place): call.extra for place, call in enumerate(arrived) if call.extra},
        }
        return AIMessage(
            text if text.strip() else "",
            tool_calls=calls,
            response_metadata={
                "model_name": self._model,
                "finish_reason": self._finish,
                **{name: value for name, value in told.items() if value},
            },
            usage_metadata=_usage(self._usage),
        )

    def _taken_apart(self) -> tuple[str, list["_Arrived"]]:
        """The text, and the calls in fields of their own; else, where calls are text, those within it."""
        text = without_thinking(repaired("".join(self._text)))
        arrived = [
            _Arrived(parts.name, parts.call_id, read_arguments(parts.whole_arguments()), parts.extra)
            for parts in self._calls.named()
        ]
        if arrived or self._held is None:
            return text, arrived
        written = written_calls(text, self._offered)
        return written.text, [_Arrived(call.name, "", call.arguments) for call in written.calls]

    def _part(self, part: Mapping[str, Any], *, is_whole: bool) -> Iterator[Delta]:
        if reasoning := thinking_text(part):
            yield from self._shown([Piece("reasoning", reasoning)])
        said = plain_text(part.get("content")) + plain_text(part.get("refusal"))
        yield from self._shown(self._thinking.feed(said))
        for call in _calls_in(part):
            added = self._calls.add_whole(call) if is_whole else self._calls.add(call)
            if added is not None:
                position, name, piece = added
                yield Delta("tool_call", repaired(piece), position, name.strip())

    def _shown(self, pieces: Sequence[Piece]) -> Iterator[Delta]:
        for kind, text in pieces:
            (self._text if kind == "text" else self._reasoning).append(text)
            shown = self._held.feed(text) if self._held and kind == "text" else text
            if shown:
                yield Delta(kind, repaired(shown))

    def _chosen(self, body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The choice that is the reply; a server that was made to give several interleaves them."""
        choices = _mappings(body.get("choices"))
        if self._choice is None and choices:
            self._choice = choices[0].get("index")
        mine = [choice for choice in choices if choice.get("index", self._choice) == self._choice][:1]
        for choice in mine:
            if choice.get("error"):
                raise ServerSaid(choice["error"])
        return mine

    def _read_calls(self, arrived: Sequence["_Arrived"]) -> tuple[list[dict[str, Any]], dict[str, str]]:
        calls: list[dict[str, Any]] = []
        complaints: dict[str, str] = {}
        for position, call in enumerate(arrived):
            value, complaint = call.arguments.value, call.arguments.complaint
            if (limit := cut_by(self._finish)) and position == len(arrived) - 1:
                value, complaint = {}, _cut_off(limit)
            if complaint:
                complaints[str(position)] = complaint
            calls.append({"name": _name(call.name, self._offered), "args": value, "id": call.call_id or None})
        return calls, complaints


@dataclass(frozen=True, slots=True)
class _Arrived:
    """One call, wherever it stood."""

    name: str
    call_id: str
    arguments: Arguments
    extra: dict[str, Any] = field(default_factory=dict)


def _object(payload: str) -> dict[str, Any]:
    try:
        body = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise BrokenReply(f"not JSON: {error}") from error
    if not isinstance(body, dict):
        raise BrokenReply("not a JSON object")
    if body.get("error"):
        raise ServerSaid(body["error"])
    if body.get("object") == "error":
        raise ServerSaid(body)
    return body


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a field that should be a list of them, or be one."""
    several = value if isinstance(value, list) else [value]
    return [entry for entry in several if isinstance(entry, Mapping)]


def _calls_in(part: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The calls of a message or a piece of one; the single call of the older protocol has a field of its own."""
    older = [{"function": function} for function in _mappings(part.get("function_call"))]
    return _mappings(part.get("tool_calls")) or _mappings(older)


def _cut_off(limit: str) -> str:
    again = "send it again, in smaller parts" if limit == _TOO_LONG else "do it in another way"
    return f"the reply was cut off by {limit} before this call was complete; {again}"


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
