"""One reply while it arrives, streamed or whole: what to show of it, and the message it is in the end.

Knows neither how it travels nor what its calls do.

Takes the body of an answer apart into payloads, whatever it is called: events, lines, or one whole object.

Knows nothing of what the payloads say.

What the reason says with which a server ends a reply. Knows nothing of the reply.

Tells an endpoint that works on an answer from one that only keeps the connection open.

Servers send comments or blank lines while a request waits for its turn: signs of life, but no part of an answer.
A line of a stream counts once it is whole, so that one byte a minute is no answer either; of a single object each
byte does. Knows nothing of what an answer says.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_core.messages import AIMessage

from graph_agent.model.openai.errors import BrokenReply, EmptyReply, NotAnApi, ReplyFailed, ServerSaid, SilentReply
from graph_agent.model.openai.messages import (
    REASONING_FIELDS,
    Piece,
    ThinkingFilter,
    plain_text,
    thinking_text,
    without_thinking,
)
from graph_agent.model.openai.text_tool_calls import HeldText, offered_as, written_calls
from graph_agent.model.openai.tool_call_chunks import Arguments, Fragments, read_arguments, repaired
from graph_agent.model.openai.usage import newest_usage
from graph_agent.ports import Delta

if TYPE_CHECKING:
    from langchain_core.messages.ai import UsageMetadata


__all__ = ["DONE", "ReplyStream", "begun_in_time", "broke_off", "cut_by", "payloads_of", "unless_silent"]

_CUT = (
    (
        re.compile(r"length|max_?(?:output_?)?tokens|(?:model_)?context_window_exceeded|model_length|token_limit"),
        "the model's output limit",
    ),
    (
        re.compile(r"content_?filter(?:ed)?|sensitive|safety|recitation|prohibited_content|blocklist|spii|refusal"),
        "the provider's content filter",
    ),
)
"""Reasons that leave the reply incomplete, even where the arguments of its newest call look whole."""

_BROKE_OFF = frozenset(
    ("abort", "aborted", "cancelled", "error", "insufficient_system_resource", "network_error", "timeout")
)
"""Reasons of servers that gave up in the middle, without any status that would say so."""


def cut_by(reason: str) -> str:
    """What cut the reply off, in words; empty where it came to its own end."""
    told = reason.strip().lower()
    return next((words for pattern, words in _CUT if pattern.fullmatch(told)), "")


def broke_off(reason: str) -> bool:
    """Whether the server itself failed, so that asking again may help."""
    return reason.strip().lower() in _BROKE_OFF


DONE = "[DONE]"

_MOST_REASONING = 100_000
"""Characters of thinking that are kept with a message; some servers want it back."""

_AFTER_MARK_S = 0.5
_AFTER_REASON_S = 10.0
"""Servers tell the reason to finish, then what was used, and some never close the connection."""

_TOO_LONG = "the model's output limit"
_NAME = re.compile(r"[^A-Za-z0-9_-]")
_CONTENT_FIELDS = ("content", "refusal")
_CALL_FIELDS = ("tool_calls", "function_call")


class ReplyStream:
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
        self._has_begun = False
        self._choice: Any = None
        """What the server calls the position of the one choice that is the reply."""
        self._is_done = False
        self._is_over = False
        """Whether the end was marked: what may follow is what the reply used."""
        self._came_in_pieces = False
        """Whether anything came as a delta; a whole message behind it says most of it again."""
        self._calls_stand_in = ""
        """The field that brings the calls; some servers fill that of the older protocol as well."""
        self._usage: UsageMetadata | None = None
        self._model = ""

    def add(self, payload: str) -> Iterator[Delta]:
        """Take in one event of a stream, or a whole body; gives what is new to show.

        Raises:
            BrokenReply: the payload is no JSON object.
            ServerSaid: it reports an error.
        """
        if payload.strip().upper() == DONE:
            self._is_done = self._is_over = True
            return
        if self._is_over:
            self._usage = newest_usage(_behind_the_end(payload), self._usage)
            return
        body = _object(payload)
        self._usage = newest_usage(body, self._usage)
        self._model = repaired(str(body.get("model") or self._model))
        for choice in self._chosen(body):
            is_whole = bool(choice.get("message"))
            self._is_done = self._is_done or is_whole
            # A reason that says "cut" stands, whatever a later chunk says.
            self._finish = (
                self._finish if cut_by(self._finish) else repaired(str(choice.get("finish_reason") or self._finish))
            )
            for part in _mappings(choice.get("message") or choice.get("delta")):
                yield from self._part(self._unsaid(part) if is_whole else part, is_whole=is_whole)
            self._came_in_pieces = self._came_in_pieces or not is_whole

    @property
    def silence_s(self) -> float | None:
        """How long to wait for more: hardly, once the end is marked; None where a limit would cut the reply."""
        return _AFTER_MARK_S if self._is_over else _AFTER_REASON_S if self.has_ended else None

    @property
    def has_ended(self) -> bool:
        """Whether the reply is whole as far as can be told, though its stream may still be open."""
        return self._is_done or bool(self._finish)

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
        if not self.has_ended:
            raise BrokenReply("the connection closed in the middle" if self._has_begun else "it holds no choices")
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
            usage_metadata=self._usage,
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

    def _unsaid(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """What the pieces before a whole message have not brought."""
        if not self._came_in_pieces:
            return message
        known = {*_CONTENT_FIELDS} if self._text else set()
        known |= {*_CALL_FIELDS} if self._calls.calls else set()
        known |= {*REASONING_FIELDS} if self._reasoning else set()
        return {name: value for name, value in message.items() if name not in known}

    def _part(self, part: Mapping[str, Any], *, is_whole: bool) -> Iterator[Delta]:
        if reasoning := thinking_text(part):
            yield from self._shown([Piece("reasoning", reasoning)])
        said = plain_text(part.get("content")) + plain_text(part.get("refusal"))
        yield from self._shown(self._thinking.feed(said))
        for call in self._fragments(part):
            added = self._calls.add_whole(call) if is_whole else self._calls.add(call)
            if added is not None:
                position, name, piece = added
                yield Delta("tool_call", repaired(piece), position, name.strip())

    def _fragments(self, part: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The calls of a message or a piece; the single call of the older protocol has a field of its own."""
        older = [{"function": function} for function in _mappings(part.get("function_call"))]
        for field_name, found in zip(_CALL_FIELDS, (_mappings(part.get("tool_calls")), older), strict=True):
            if found and self._calls_stand_in in ("", field_name):
                self._calls_stand_in = field_name
                return _mappings(found)
        return []

    def _shown(self, pieces: Sequence[Piece]) -> Iterator[Delta]:
        for kind, text in pieces:
            (self._text if kind == "text" else self._reasoning).append(text)
            shown = self._held.feed(text) if self._held and kind == "text" else text
            if shown:
                yield Delta(kind, repaired(shown))

    def _chosen(self, body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The choice that is the reply; a server that was made to give several interleaves them."""
        choices = _mappings(body.get("choices"))
        self._has_begun = self._has_begun or bool(choices)
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
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    if body is None:
        return {}
    if not isinstance(body, dict):
        raise BrokenReply("not a JSON object")
    if body.get("error"):
        raise ServerSaid(body["error"])
    if body.get("object") == "error":
        raise ServerSaid(body)
    return body


def _behind_the_end(payload: str) -> Mapping[str, Any]:
    try:
        return _object(payload)
    except ReplyFailed:
        return {}


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a field that should be a list of them, or be one."""
    several = value if isinstance(value, list) else [value]
    return [entry for entry in several if isinstance(entry, Mapping)]


def _cut_off(limit: str) -> str:
    again = "send it again, in smaller parts" if limit == _TOO_LONG else "do it in another way"
    return f"the reply was cut off by {limit} before this call was complete; {again}"


def _name(name: str, offered: Sequence[str]) -> str:
    """The offered name where blanks, letter case or marks around it differ; else one that servers take back."""
    return offered_as(name, offered) or _NAME.sub("_", name.strip())[:64] or "unnamed"


_LINE_END = re.compile(rb"[\r\n]")
_EVENTS = re.compile(rb"\s*(?:data|event|id|retry)?:")
_TELLING = 6
"""How many of the first bytes tell what comes."""
_JSON = (b"{", b"[")
_BOM = b"\xef\xbb\xbf"


async def payloads_of(blocks: AsyncIterator[bytes], content_type: str = "") -> AsyncIterator[str]:
    """The data of each event, or the one body of an answer that is none; the first bytes tell more than its name.

    Raises:
        NotAnApi: it is a web page.
    """
    start = b""
    while len(start.removeprefix(_BOM).strip()) < _TELLING and (block := await anext(blocks, None)) is not None:
        start += block
    begins = start.removeprefix(_BOM).lstrip()
    are_events = _EVENTS.match(begins) is not None
    if begins.startswith(b"<") or ("text/html" in content_type and not are_events and begins[:1] not in _JSON):
        raise NotAnApi("it answered with a web page")
    if (begins[:1] in _JSON or "json" in content_type) and not are_events:
        body = start + b"".join([block async for block in blocks])
        for payload in _whole(body.decode("utf-8-sig", "replace")):
            yield payload
        return
    async for payload in _events(start, blocks):
        yield payload


def _whole(text: str) -> Iterator[str]:
    """One object; some servers send one a line, and some report an error before their first event."""
    lines = [payload for line in text.splitlines() if (payload := _payload(line))]
    if _is_json(text) or not lines:
        yield text
    else:
        yield from lines


async def _events(start: bytes, blocks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """Payloads of an event stream; one may go over several lines, each called data."""
    begun: list[str] = []
    async for line in _lines_of(start, blocks):
        payload = _payload(line)
        if payload and (begun or (payload.startswith("{") and not payload.endswith("}"))):
            begun.append(payload)
            payload = "\n".join(begun)
            if not _is_json(payload):
                continue
        elif not line and begun:
            payload = "\n".join(begun)
        if payload:
            begun.clear()
            yield payload
    if begun:
        yield "\n".join(begun)


async def _lines_of(start: bytes, blocks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    *lines, rest = _LINE_END.split(start)
    for line in lines:
        yield _decoded(line)
    async for block in blocks:
        *lines, rest = _LINE_END.split(rest + block)
        for line in lines:
            yield _decoded(line)
    yield _decoded(rest)


def _decoded(line: bytes) -> str:
    return line.decode("utf-8-sig", "replace").strip()


def _payload(line: str) -> str:
    """What an event says; a bare object between events reports an error."""
    text = line.strip()
    return text if text.startswith("{") else text.removeprefix("data:").strip() if text.startswith("data:") else ""


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


T = TypeVar("T")

_TELLING_SILENCE = 64
"""How many bytes of a line tell whether it is part of an answer."""


async def begun_in_time(answer: Awaitable[T], limit_s: float) -> T:
    """The answer once its head is whole, however slowly the bytes of that drip in.

    Raises:
        SilentReply: it was not whole after so long.
    """
    try:
        async with asyncio.timeout(limit_s):
            return await answer
    except TimeoutError:
        raise SilentReply(f"{limit_s:g} s") from None


async def unless_silent(blocks: AsyncGenerator[bytes, None], limit_s: float) -> AsyncGenerator[bytes, None]:
    """The blocks as they come.

    Raises:
        SilentReply: none of them was part of an answer for so long.
    """
    ear, clock = _Ear(), asyncio.get_running_loop().time
    heard = clock()
    while True:
        try:
            async with asyncio.timeout_at(heard + limit_s):
                block = await anext(blocks, None)
        except TimeoutError:
            raise SilentReply(f"{limit_s:g} s") from None
        if block is None:
            return
        if ear.hears(block):
            heard = clock()
        yield block


class _Ear:
    """Listens to the bytes of one answer."""

    def __init__(self) -> None:
        self._line = b""
        """The beginning of a line that has not ended yet."""
        self._is_object: bool | None = None
        """Whether the answer is one object; None: nothing of it came yet."""

    def hears(self, block: bytes) -> bool:
        """Whether this brings the answer further."""
        if self._is_object:
            return bool(block.strip())
        *whole, rest = _LINE_END.split(self._line + block)
        told = [begin for line in (*whole, rest) if (begin := line.removeprefix(_BOM).strip())]
        if self._is_object is None and told:
            self._is_object = told[0][:1] in (b"{", b"[")
        self._line = rest.lstrip()[:_TELLING_SILENCE]
        return bool(self._is_object) or any(map(_is_part, whole))


def _is_part(line: bytes) -> bool:
    text = line.removeprefix(_BOM).strip()
    return text.startswith(b"{") or (text.startswith(b"data:") and len(text) > len(b"data:"))
