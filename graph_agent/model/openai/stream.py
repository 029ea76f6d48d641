"""One reply while it arrives, streamed or whole: the deltas to show, and the finished message.

Below that: the token counts of a server, splitting the body of a response into payloads, and noticing a connection
on which nothing arrives.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata

from graph_agent.model.openai.errors import (
    BrokenReply,
    EmptyReply,
    NoMessage,
    ReplyError,
    ServerError,
    StalledReply,
    UnknownProtocol,
)
from graph_agent.model.openai.messages import (
    REASONING_FIELDS,
    Piece,
    ThinkingFilter,
    content_text,
    reasoning_text,
    strip_thinking,
)
from graph_agent.model.openai.text_tool_calls import TextBuffer, match_tool_name, parse_text_tool_calls
from graph_agent.model.openai.tool_call_chunks import (
    Arguments,
    ToolCallAssembler,
    parse_arguments,
    replace_surrogates,
)
from graph_agent.ports import Delta

__all__ = [
    "DONE",
    "ReplyStream",
    "iter_payloads",
    "latest_usage",
    "parse_usage",
    "raise_if_stalled",
    "truncation_cause",
]

DONE = "[DONE]"

_OUTPUT_LIMIT = "the model's output limit"
_TRUNCATIONS = (
    (
        re.compile(r"length|max_?(?:output_?)?tokens|(?:model_)?context_window_exceeded|model_length|token_limit"),
        _OUTPUT_LIMIT,
    ),
    (
        re.compile(r"content_?filter(?:ed)?|sensitive|safety|recitation|prohibited_content|blocklist|spii|refusal"),
        "the provider's content filter",
    ),
)
"""Finish reasons of an incomplete reply, even where the arguments of its last call look complete."""
_SERVER_FAILURES = frozenset(
    ("abort", "aborted", "cancelled", "error", "insufficient_system_resource", "network_error", "timeout")
)
"""Finish reasons of servers that gave up in the middle without an error status."""

_MAX_REASONING = 100_000
"""Characters of reasoning that are kept with a message; some servers want it back."""
_WAIT_AFTER_DONE_S = 0.5
_WAIT_AFTER_REASON_S = 10.0
"""Servers send the finish reason, then the usage, and some never close the connection."""

_INVALID_IN_NAME = re.compile(r"[^A-Za-z0-9_-]")
_CONTENT_FIELDS = ("content", "refusal")
_CALL_FIELDS = ("tool_calls", "function_call")


def truncation_cause(finish_reason: str) -> str:
    """What cut the reply off, in words; empty where it ended normally."""
    for pattern, cause in _TRUNCATIONS:
        if pattern.fullmatch(finish_reason.strip().lower()):
            return cause
    return ""


class _Call(NamedTuple):
    """One call, from the fields of the reply or from its text."""

    name: str
    call_id: str
    arguments: Arguments
    extra: Mapping[str, Any]


class ReplyStream:
    """Takes the payloads of one response."""

    def __init__(self, tool_names: Sequence[str] = (), *, calls_are_text: bool = False) -> None:
        self._tool_names = tool_names
        """Names of the tools on offer."""
        self._text_buffer = TextBuffer() if calls_are_text else None
        self._text: list[str] = []
        self._calls = ToolCallAssembler()
        self._reasoning: list[str] = []
        self._thinking = ThinkingFilter()
        self._finish_reason = ""
        self._has_begun = False
        self._choice_index: Any = None
        """The index of the one choice that is the reply."""
        self._is_complete = False
        self._is_marked_done = False
        """Whether the end was marked; only usage may follow."""
        self._has_deltas = False
        """Whether anything came as a delta; a whole message after it repeats most of it."""
        self._call_field = ""
        """The field with the calls; some servers fill that of the older protocol as well."""
        self._usage: UsageMetadata | None = None
        self._model = ""
        self._final_text = ""
        """The text of the whole reply, and its calls, once it has ended."""
        self._final_calls: list[_Call] = []

    def add(self, payload: str) -> Iterator[Delta]:
        """Take one event of a stream, or a whole body; returns what is new to show.

        Raises:
            BrokenReply: the payload is no JSON object.
            UnknownProtocol: nothing came before it, and it is JSON of another kind.
            ServerError: it reports an error.
        """
        if payload.strip().upper() == DONE:
            self._is_complete = self._is_marked_done = True
            return
        if self._is_marked_done:
            try:
                self._usage = latest_usage(_parse_object(payload), self._usage)
            except ReplyError:
                return
            return
        body = _parse_object(payload, is_first=not self._has_begun)
        self._usage = latest_usage(body, self._usage)
        self._model = replace_surrogates(str(body.get("model") or self._model))
        choice = self._own_choice(body)
        if choice is None:
            return
        is_whole = bool(choice.get("message"))
        self._is_complete = self._is_complete or is_whole
        # A reason that means truncation stays, whatever a later chunk says.
        if not truncation_cause(self._finish_reason):
            self._finish_reason = replace_surrogates(str(choice.get("finish_reason") or self._finish_reason))
        for message in _mappings(choice.get("message") or choice.get("delta")):
            yield from self._add_message(message, is_whole=is_whole)
        self._has_deltas = self._has_deltas or not is_whole

    @property
    def wait_s(self) -> float | None:
        """How long to wait for more; None where a limit would cut the reply off."""
        if self._is_marked_done:
            return _WAIT_AFTER_DONE_S
        return _WAIT_AFTER_REASON_S if self.has_ended else None

    @property
    def has_ended(self) -> bool:
        """Whether the reply seems complete, though its stream may still be open."""
        return self._is_complete or bool(self._finish_reason)

    def end(self) -> Iterator[Delta]:
        """What was buffered until the end. The calls are now known: from their own fields, or from the text."""
        yield from self._show(self._thinking.flush())
        self._final_text = strip_thinking(replace_surrogates("".join(self._text)))
        for call in self._calls.calls:
            if call.name or call.call_id or call.joined_arguments:
                arguments = parse_arguments(call.arguments())
                self._final_calls.append(_Call(call.name, call.call_id, arguments, call.extra))
        if self._text_buffer is not None:
            if not self._final_calls:
                parsed = parse_text_tool_calls(self._final_text, self._tool_names)
                self._final_text = parsed.text
                self._final_calls += [_Call(call.name, "", call.arguments, {}) for call in parsed.calls]
            if remaining := self._text_buffer.remaining(self._final_text):
                yield Delta("text", remaining)
        cause = truncation_cause(self._finish_reason)
        if cause and self._final_text and not self._final_calls:
            yield Delta("note", f"The reply was cut off by {cause}; the text above is incomplete.")

    def message(self) -> AIMessage:
        """The whole message; call after `end`.

        Raises:
            BrokenReply: it ended before it was complete.
            EmptyReply: it has neither text nor calls.
        """
        reason = self._finish_reason
        if not self.has_ended:
            if not self._has_begun:
                raise NoMessage("it has no choices")
            raise BrokenReply("the connection closed in the middle")
        if reason.strip().lower() in _SERVER_FAILURES:
            raise BrokenReply(f"finish reason: {reason}")
        text, calls = self._final_text, self._final_calls
        if not calls and not text.strip():
            raise EmptyReply(f"finish reason: {reason or 'none'}")
        cause = truncation_cause(reason)
        tool_calls: list[dict[str, Any]] = []
        errors: dict[str, str] = {}
        extra: dict[str, Mapping[str, Any]] = {}
        for position, call in enumerate(calls):
            name = call.name
            if name not in self._tool_names:
                # A name that is not on offer is made one that servers accept in a history.
                name = match_tool_name(name, self._tool_names) or _INVALID_IN_NAME.sub("_", name.strip())[:64]
            value, error = call.arguments.value, call.arguments.error
            if cause and position + 1 == len(calls):
                retry = "send it again, in smaller parts" if cause == _OUTPUT_LIMIT else "do it in another way"
                value, error = {}, f"the reply was cut off by {cause} before this call was complete; {retry}"
            tool_calls.append({"name": name or "unnamed", "args": value, "id": call.call_id or None})
            errors |= {str(position): error} if error else {}
            extra |= {str(position): call.extra} if call.extra else {}
        reasoning = replace_surrogates("".join(self._reasoning))[:_MAX_REASONING]
        optional = {"unusable_arguments": errors, "reasoning": reasoning, "extra_content": extra}
        return AIMessage(
            text if text.strip() else "",
            tool_calls=tool_calls,
            response_metadata={
                "model_name": self._model,
                "finish_reason": reason,
                **{name: value for name, value in optional.items() if value},
            },
            usage_metadata=self._usage,
        )

    def _add_message(self, message: Mapping[str, Any], *, is_whole: bool) -> Iterator[Delta]:
        if is_whole and self._has_deltas:
            # It repeats most of what the deltas have brought.
            known = {*_CONTENT_FIELDS} if self._text else set()
            known |= {*_CALL_FIELDS} if self._calls.calls else set()
            known |= {*REASONING_FIELDS} if self._reasoning else set()
            message = {name: value for name, value in message.items() if name not in known}
        if reasoning := reasoning_text(message):
            yield from self._show([Piece("reasoning", reasoning)])
        text = content_text(message.get("content")) + content_text(message.get("refusal"))
        yield from self._show(self._thinking.feed(text))
        for call in self._raw_calls(message):
            added = self._calls.add(call, is_whole=is_whole)
            if added is not None:
                position, name, piece = added
                yield Delta("tool_call", replace_surrogates(piece), position, name.strip())

    def _raw_calls(self, message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The calls of a message or chunk; the single call of the older protocol has a field of its own."""
        for name in _CALL_FIELDS:
            if (calls := _mappings(message.get(name))) and self._call_field in ("", name):
                self._call_field = name
                return calls if name == "tool_calls" else [{"function": function} for function in calls]
        return []

    def _show(self, pieces: Sequence[Piece]) -> Iterator[Delta]:
        for kind, text in pieces:
            (self._text if kind == "text" else self._reasoning).append(text)
            shown = self._text_buffer.feed(text) if self._text_buffer and kind == "text" else text
            if shown:
                yield Delta(kind, replace_surrogates(shown))

    def _own_choice(self, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The choice that is the reply; a server that was made to return several interleaves them."""
        for choice in _mappings(body.get("choices")):
            self._has_begun = True
            if self._choice_index is None:
                self._choice_index = choice.get("index")
            if choice.get("index", self._choice_index) == self._choice_index:
                if choice.get("error"):
                    raise ServerError(choice["error"])
                return choice
        return None


def _parse_object(payload: str, *, is_first: bool = False) -> dict[str, Any]:
    if not payload.strip():
        raise NoMessage("its body is empty")
    try:
        body = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise BrokenReply(f"not JSON: {error}") from error
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    if body is None:
        return {}
    if not isinstance(body, dict) and not is_first:
        raise BrokenReply("not a JSON object")
    if not isinstance(body, dict):
        # It is a reply of its own, and not one that was cut: the same request would get the same again.
        raise UnknownProtocol(f"its reply is JSON, but not an object: {payload.strip():.60}")
    if body.get("error"):
        raise ServerError(body["error"])
    if body.get("object") == "error":
        raise ServerError(body)
    return body


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a field that should be a list of them, or is one."""
    entries = value if isinstance(value, list) else [value]
    return [entry for entry in entries if isinstance(entry, Mapping)]


_MAX_TOKENS = 2**53
"""No request is that long: a larger number is an error, and may not fit where it is stored."""


def latest_usage(body: Mapping[str, Any], earlier: UsageMetadata | None) -> UsageMetadata | None:
    """The usage after one more chunk. Each chunk counts from the beginning; one without counts changes nothing.

    It may be at the top, within the choice, or in a field of one provider.
    """
    for place in (body, *_mappings(body.get("choices")), body.get("x_groq")):
        if isinstance(place, Mapping) and place.get("usage") and (usage := parse_usage(place["usage"])):
            return usage
    return earlier


def parse_usage(usage: Any) -> UsageMetadata | None:
    """The counts if both input and output are given, since one alone would pass for the whole."""
    if not isinstance(usage, Mapping):
        return None
    total = _count(usage, "total_tokens")
    input_tokens = _count(usage, "prompt_tokens", "input_tokens")
    output_tokens = _count(usage, "completion_tokens", "output_tokens")
    if total is not None and output_tokens is not None and input_tokens is None:
        input_tokens = max(total - output_tokens, 0)
    elif total is not None and input_tokens is not None and output_tokens is None:
        output_tokens = max(total - input_tokens, 0)
    if not input_tokens or output_tokens is None:
        return None
    counts: dict[str, Any] = {
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "total_tokens": max(total or 0, input_tokens + output_tokens),
    }
    if cached := (
        _count(usage, "prompt_tokens_details.cached_tokens")
        or _count(usage, "input_tokens_details.cached_tokens")
        or _count(usage, "prompt_cache_hit_tokens")
    ):
        counts["input_token_details"] = {"cache_read": min(cached, input_tokens)}
    if reasoning := (
        _count(usage, "completion_tokens_details.reasoning_tokens")
        or _count(usage, "output_tokens_details.reasoning_tokens")
    ):
        counts["output_token_details"] = {"reasoning": reasoning}
    return cast("UsageMetadata", counts)


def _count(usage: Mapping[str, Any], *paths: str) -> int | None:
    """The first number of tokens at these paths, also where it is a text or a float without a fraction."""
    for path in paths:
        value: Any = usage
        for key in path.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
            value = int(value)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and 0 <= value <= _MAX_TOKENS and value == int(value):
            return int(value)
    return None


_LINE_END = re.compile(rb"[\r\n]")
_EVENT = re.compile(rb"\s*(?:data|event|id|retry)?:")
_MIN_START = 6
"""How many of the first bytes are needed to recognise the format."""
_JSON = (b"{", b"[")
_BOM = b"\xef\xbb\xbf"


async def iter_payloads(blocks: AsyncIterator[bytes], content_type: str = "") -> AsyncIterator[str]:
    """The data of each event, or the one body of a plain response; the first bytes count more than the type.

    Raises:
        UnknownProtocol: it is a web page.
    """
    start = b""
    while len(start.removeprefix(_BOM).strip()) < _MIN_START and (block := await anext(blocks, None)) is not None:
        start += block
    begins = start.removeprefix(_BOM).lstrip()
    are_events = _EVENT.match(begins) is not None
    if begins.startswith(b"<") or ("text/html" in content_type and not are_events and begins[:1] not in _JSON):
        raise UnknownProtocol("it answered with a web page")
    if (begins[:1] in _JSON or "json" in content_type) and not are_events:
        text = (start + b"".join([block async for block in blocks])).decode("utf-8-sig", "replace")
        # Some servers send one object per line, and some report an error before their first event.
        lines = [payload for line in text.splitlines() if (payload := _payload(line))]
        for payload in [text] if _is_json(text) or not lines else lines:
            yield payload
        return
    async for payload in _iter_events(start, blocks):
        yield payload


async def _iter_events(start: bytes, blocks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """Payloads of an event stream; one may span several lines of data."""
    begun: list[str] = []
    async for line in _iter_lines(start, blocks):
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


async def _iter_lines(partial: bytes, blocks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    block: bytes | None = b""
    while block is not None:
        *lines, partial = _LINE_END.split(partial + block)
        for line in lines:
            yield line.decode("utf-8-sig", "replace").strip()
        block = await anext(blocks, None)
    yield partial.decode("utf-8-sig", "replace").strip()


def _payload(line: str) -> str:
    """The data of an event; a bare object between events reports an error."""
    text = line.strip()
    if text.startswith("{"):
        return text
    return text.removeprefix("data:").strip() if text.startswith("data:") else ""


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


_LINE_START = 64
"""How many bytes of a line show whether it is part of a reply."""


async def raise_if_stalled(blocks: AsyncIterator[bytes], limit_s: float) -> AsyncGenerator[bytes, None]:
    """The blocks as they arrive.

    Raises:
        StalledReply: for so long no block was part of a reply.
        BrokenReply: the connection broke.
    """
    monitor, clock = _ProgressMonitor(), asyncio.get_running_loop().time
    last_progress = clock()
    while True:
        try:
            async with asyncio.timeout_at(last_progress + limit_s):
                block = await anext(blocks, None)
        except TimeoutError:
            raise StalledReply(f"{limit_s:g} s") from None
        except Exception as error:
            raise BrokenReply(f"{type(error).__name__}: {error}") from error
        if block is None:
            return
        if monitor.is_progress(block):
            last_progress = clock()
        yield block


class _ProgressMonitor:
    """Distinguishes parts of a reply from what only keeps the connection open.

    Servers send comments or blank lines while a request is queued. A line of a stream counts once it is complete,
    so that one byte a minute is no progress; of a single object each byte counts.
    """

    def __init__(self) -> None:
        self._line = b""
        """The beginning of a line that has not ended yet."""
        self._is_object: bool | None = None
        """Whether the response is a single object; None: nothing of it came yet."""

    def is_progress(self, block: bytes) -> bool:
        """Whether the block brings the reply further."""
        if self._is_object:
            return bool(block.strip())
        *complete, self._line = _LINE_END.split(self._line + block)
        is_part = False
        for line in complete:
            text = line.removeprefix(_BOM).strip()
            is_part = is_part or text.startswith(b"{") or (text.startswith(b"data:") and text != b"data:")
            if self._is_object is None and text:
                self._is_object = text[:1] in _JSON
        text = self._line.removeprefix(_BOM).strip()
        if self._is_object is None and text:
            self._is_object = text[:1] in _JSON
        self._line = self._line.lstrip()[:_LINE_START]
        return bool(self._is_object) or is_part
