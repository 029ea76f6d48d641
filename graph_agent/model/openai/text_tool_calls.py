"""Finds tool calls that a model wrote into the text of its reply, in the formats that models are trained on."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from graph_agent.model.openai.tool_call_chunks import Arguments, parse_arguments

__all__ = [
    "UNREADABLE",
    "ParsedReply",
    "TextBuffer",
    "TextToolCall",
    "match_tool_name",
    "parse_json_calls",
    "parse_named_json_calls",
    "parse_tagged_calls",
    "parse_text_tool_calls",
]


@dataclass(frozen=True, slots=True)
class TextToolCall:
    """A call that was written as text."""

    name: str
    arguments: Arguments


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """A reply split into calls and text."""

    calls: tuple[TextToolCall, ...]
    text: str
    """The text around the calls."""


class _Span(NamedTuple):
    start: int
    end: int
    calls: tuple[TextToolCall, ...]


UNREADABLE = TextToolCall(
    "", Arguments(error='no call could be read from the tags; send {"name": ..., "arguments": {...}} in them')
)
"""What was meant as a call and is none: the model gets an error, or else the reply would pass for an answer."""

_PREFIX = r"(?:[｜|]+\s*\w+\s*[｜|]+|antml:)?"
"""What some models put before the names of their tags."""
_TAG = re.compile(rf"<((?:{_PREFIX})(?:(?i:tool[_-]?calls?|tool_use|function_calls?)|tool))>")
_OPENING = re.compile(
    r"^[ \t]*<(?:tool[_-]?calls?|tool_use|function_calls?)\b[^<>]*>", re.MULTILINE | re.IGNORECASE
)
"""Where a line begins with what announces a call, in whatever form it then comes."""
_CLOSING = re.compile(r"</(?:tool[_-]?calls?|tool_use|function_calls?)>", re.IGNORECASE)
_INVOCATION = re.compile(
    rf"<(?:{_PREFIX})(?:invoke\s+name|function)\s*=.*?(?:</(?:{_PREFIX})(?:invoke|function)>|\Z)", re.DOTALL
)
_FENCE = re.compile(
    r"^[ \t]*(?:```|~~~)[ \t]*(?:json[5c]?|xml|python|text|tool_?calls?|tool_code|tool)?[ \t]*\n", re.MULTILINE
)
_FENCE_END = re.compile(r"\s*^[ \t]*(?:```|~~~)[ \t]*$", re.MULTILINE)
_EMPTY_FENCE = re.compile(r"(?:```|~~~)\w*")
_LIST = re.compile(r"\[TOOL_CALLS?\]|<\|tool_calls?\|>|<\|python_tag\|>(?=\s*[\[{])|\bfunctools(?=\[)")
_LIST_END = re.compile(r"\s*(?:\[/TOOL_CALLS?\]|<\|/tool_calls?\|>)|(?=\[TOOL_CALLS?\])")
_THINKING = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_REACT = re.compile(r"^Action:[ \t]*([\w.-]{1,80})[ \t]*\n+Action Input:[ \t]*", re.MULTILINE)
"""The format of models that were trained to think, act and observe in turn."""
_TOKENS = re.compile(
    r"<[｜|]tool[▁_]call[▁_]begin[｜|]>(?:function(?!s\.))?(?:<｜tool▁sep｜>)?([\w.:-]{1,80})\s*"
    r"(?:<｜tool▁sep｜>|<\|tool_call_argument_begin\|>)?\s*(?:```(?:json)?\s*)?"
    r"(.*?)(?:\s*```)?\s*(?:<[｜|]tool[▁_]call[▁_]end[｜|]>|\Z)",
    re.DOTALL,
)
_LEFTOVER = re.compile(
    rf"</?(?:{_PREFIX})(?:tool_calls?|function_calls?)>|<｜tool▁(?:calls|outputs)▁(?:begin|end)｜>"
    r"|<\|tool_calls_section_(?:begin|end)\|>"
)
_LINE_OF_JSON = re.compile(r"(?:\A|\n)[ \t]*(?=[\[{])")
_MADE_UP_RESULT = re.compile(r"<tool_(?:result|response)\b|^Observation:", re.MULTILINE)
"""Where a model continues by making up the result of its own call."""


def parse_text_tool_calls(text: str, tool_names: Sequence[str]) -> ParsedReply:
    """The calls in the text, in order; a call in plain JSON only counts for a tool that is offered."""
    spans: list[_Span] = []
    # The most certain come first: what lies in a span that was found before is skipped.
    for span in chain(_marked_calls(text, tool_names), _unmarked_calls(text, tool_names)):
        if span.calls and not any(span.start < other.end and other.start < span.end for other in spans):
            spans.append(span)
    # What looks like thinking within a call is part of the call; a call within thinking is none.
    thinking = [
        match.span()
        for match in _THINKING.finditer(text)
        if not any(span.start <= match.start() < span.end for span in spans)
    ]
    spans = sorted(
        span for span in spans if not any(start < span.start and span.end <= end for start, end in thinking)
    )
    if not spans:
        return ParsedReply((), text)
    # A made-up result of a call ends the reply: the text after it is worthless.
    first = min(span.end for span in spans)
    until = next(
        (
            start
            for match in _MADE_UP_RESULT.finditer(text)
            if (start := match.start()) >= first and not any(span.start < start < span.end for span in spans)
        ),
        len(text),
    )
    spans = [span for span in spans if span.start < until]
    edges = [0, *(edge for span in spans for edge in (span.start, span.end)), until]
    around = [
        _LEFTOVER.sub("", text[start:end]).strip() for start, end in zip(edges[::2], edges[1::2], strict=True)
    ]
    rest = "\n\n".join(part for part in around if part and not _EMPTY_FENCE.fullmatch(part))
    return ParsedReply(tuple(call for span in spans for call in span.calls), rest)


def match_tool_name(name: str, tool_names: Sequence[str]) -> str | None:
    """The offered tool that is meant, in any letter case and with any marks; None where it is not clear."""
    bare = name.strip()
    for spelling in (bare, _AROUND_NAME.sub(r"\1", bare)):
        same = [known for known in tool_names if known.casefold() == spelling.casefold()]
        if spelling in tool_names or len(same) == 1:
            return spelling if spelling in tool_names else same[0]
    return None


def _marked_calls(text: str, tool_names: Sequence[str]) -> Iterator[_Span]:
    """Calls between marks that models use for nothing else."""
    for opened in _TAG.finditer(text):
        yield _parse_until(text, opened, re.compile(rf"\s*</{re.escape(opened[1])}>", re.IGNORECASE))
    for match in _INVOCATION.finditer(text):
        yield _Span(*match.span(), _if_known(parse_tagged_calls(match[0]), tool_names))
    for opened in _LIST.finditer(text):
        yield _parse_until(text, opened, _LIST_END)
    for match in _TOKENS.finditer(text):
        yield _Span(*match.span(), (TextToolCall(match[1], parse_arguments(match[2])),))


def _unmarked_calls(text: str, tool_names: Sequence[str]) -> Iterator[_Span]:
    """What may be a call: an action, a code block, JSON at the end of the text, and tags that could not be read."""
    for match in _REACT.finditer(text):
        following = text[match.end() :]
        end = parse_json_calls(following)[1] if following.startswith("{") else 0
        end = end or len(following.split("\nObservation:", 1)[0])
        call = TextToolCall(match[1], parse_arguments(following[:end].strip()))
        yield _Span(match.start(), match.end() + end, _if_known((call,), tool_names))
    for opened in _FENCE.finditer(text):
        span = _parse_until(text, opened, _FENCE_END)
        yield span._replace(calls=_if_known(span.calls, tool_names))
    for match in _LINE_OF_JSON.finditer(text):
        calls, end = parse_json_calls(text[match.end() :])
        if calls and not text[match.end() + end :].strip():
            yield _Span(match.start(), len(text), _if_known(calls, tool_names))
            break
    for number, opened in enumerate(_OPENING.finditer(text)):
        closed = _CLOSING.search(text, opened.end())
        # An empty pair of tags behind another call is ignored.
        if not number or text[opened.end() : closed.start() if closed else len(text)].strip():
            yield _Span(opened.start(), closed.end() if closed else len(text), (UNREADABLE,))


def _parse_until(text: str, opened: re.Match[str], end: re.Pattern[str]) -> _Span:
    """The calls between an opening and its end. Complete JSON is read first, because it may contain the end."""
    start = opened.end()
    calls, length = parse_json_calls(text[start:])
    if calls and not any(call.arguments.error for call in calls):
        closed = end.match(text, start + length)
        return _Span(opened.start(), closed.end() if closed else start + length, calls)
    closed = end.search(text, start)
    body = text[start : closed.start() if closed else len(text)]
    calls = parse_tagged_calls(body) or parse_named_json_calls(body) or parse_json_calls(body)[0]
    return _Span(opened.start(), closed.end() if closed else len(text), calls)


def _if_known(calls: tuple[TextToolCall, ...], tool_names: Sequence[str]) -> tuple[TextToolCall, ...]:
    return calls if all(match_tool_name(call.name, tool_names) for call in calls) else ()


_NAMES = ("name", "tool_name", "tool", "function", "function_name", "action", "recipient_name")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "tool_input", "action_input", "params", "kwargs")
_LISTS = ("tool_calls", "tool_uses", "calls")
_NAME_IN_BROKEN = re.compile(r'"(?:name|tool|tool_name|function)"\s*:\s*"([^"\\]{1,64})"')
_INVOKED = re.compile(
    rf"<{_PREFIX}(?:invoke|function)(?:\s+name\s*=\s*|=)\"?([^\">\s]{{1,80}})\"?\s*>(.*?)"
    rf"(?:</{_PREFIX}(?:invoke|function)>|(?=<{_PREFIX}(?:invoke|function)[ =])|\Z)",
    re.DOTALL,
)
"""`<invoke name="x">`, plain or with DeepSeek's prefix, and `<function=x>`."""
_PARAMETER = re.compile(
    rf"<{_PREFIX}parameter(?:\s+name\s*=\s*|=)\"?([^\">\s]{{1,80}})\"?([^>]*)>(.*?)</{_PREFIX}parameter>", re.DOTALL
)
_PARAMETER_START = re.compile(rf"<{_PREFIX}parameter\b")
_PARAMETER_END = re.compile(rf"</{_PREFIX}parameter>")
_KEY_VALUE = re.compile(r"<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>", re.DOTALL)
_LONE_KEY_VALUE = re.compile(r"</?arg_(?:key|value)\b")
_AROUND_NAME = re.compile(r"\A(?:functions\.)?(.*?)(?::\d+|<\|.*)?\Z", re.DOTALL)
"""What models leave around a name: the namespace, the number of the call, a token of their own format."""
_NAME_BEFORE_JSON = re.compile(r"\s*([\w.-]{1,80})(?:\[CALL_ID\]\w+)?(?:\[ARGS\])?\s*(?=\{)")
_JSON_START = re.compile(r"[\s,;]*(?=[\[{])")
_DECODER = json.JSONDecoder(strict=False)

_NO_END = "the call has no end; send the whole of it again"


def parse_json_calls(text: str) -> tuple[tuple[TextToolCall, ...], int]:
    """The calls of the JSON values at the beginning of the text, and where they end; a broken one has an error."""
    calls: list[TextToolCall] = []
    position = 0
    while found := _JSON_START.match(text, position):
        try:
            value, position = _DECODER.raw_decode(text, found.end())
        except (ValueError, RecursionError) as error:
            named = _NAME_IN_BROKEN.search(text, found.end())
            if named is None:
                return tuple(calls), position
            message = (
                f"the call is not valid JSON ({error}); send it again as one JSON object with name and arguments"
            )
            return (*calls, TextToolCall(named[1], Arguments(error=message))), len(text)
        calls += _calls_in(value)
    return tuple(calls), position


def parse_tagged_calls(text: str) -> tuple[TextToolCall, ...]:
    """The calls written as tags within the text."""
    invoked = tuple(TextToolCall(match[1], _tagged_arguments(match)) for match in _INVOKED.finditer(text))
    pairs = _KEY_VALUE.findall(text)
    if invoked or not pairs:
        return invoked
    name = text.strip().split("\n", 1)[0].split("<", 1)[0].strip()
    if _LONE_KEY_VALUE.search(_KEY_VALUE.sub("", text)):
        return (TextToolCall(name, Arguments(error=_NO_END)),)
    return (TextToolCall(name, Arguments({key.strip(): value for key, value in pairs})),)


def parse_named_json_calls(text: str) -> tuple[TextToolCall, ...]:
    """Calls that are each a name followed by its arguments, `ls{"path": "."}`."""
    calls: list[TextToolCall] = []
    position = 0
    while named := _NAME_BEFORE_JSON.match(text, position):
        try:
            value, position = _DECODER.raw_decode(text, named.end())
        except (ValueError, RecursionError):
            return (*calls, TextToolCall(named[1], parse_arguments(text[named.end() :])))
        calls.append(TextToolCall(named[1], parse_arguments(value)))
    return tuple(calls)


def _calls_in(value: Any) -> list[TextToolCall]:
    if isinstance(value, list):
        return [call for item in value for call in _calls_in(item)]
    if not isinstance(value, Mapping):
        return []
    for key in _LISTS:
        if isinstance(value.get(key), list):
            return _calls_in(value[key])
    if isinstance(inner := value.get("function"), Mapping):
        return _calls_in(inner)
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), None)
    if name is None:
        return _nameless_call(value)
    arguments = next((value[key] for key in _ARGUMENTS if key in value), None)
    is_call = arguments is not None or len(value) == 1 or "arguments" in value
    return [TextToolCall(name.removeprefix("functions."), parse_arguments(arguments))] if is_call else []


def _nameless_call(value: Mapping[str, Any]) -> list[TextToolCall]:
    """An error for the model where a call was meant and its name is not a text."""
    if not any(key in value for key in _ARGUMENTS) or not any(key in value for key in _NAMES):
        return []
    name = json.dumps(next(value[key] for key in _NAMES if key in value))[:64]
    message = f"the name of the tool must be a text, not {name}; send the call again with its name"
    return [TextToolCall("", Arguments(error=message))]


def _tagged_arguments(call: re.Match[str]) -> Arguments:
    body = call[2].strip()
    if body.startswith("{"):
        return parse_arguments(body)
    is_complete = call.end() < len(call.string) or call[0].endswith(">")
    around = _PARAMETER.sub("", body)
    if not is_complete or _PARAMETER_START.search(around):
        return Arguments(error=_NO_END)
    if _PARAMETER_END.search(around):
        return Arguments(error="the end of a parameter is not clear; send the call as one JSON object")
    return parse_arguments({match[1]: _parameter(match[2], match[3]) for match in _PARAMETER.finditer(body)})


def _parameter(attributes: str, text: str) -> Any:
    """A value between tags is a text unless the tag says otherwise; tools convert texts to numbers."""
    bare = text.removeprefix("\n").removesuffix("\n")
    if 'string="false"' not in attributes:
        return bare
    try:
        return json.loads(bare)
    except (ValueError, RecursionError):
        return bare


_MAY_BEGIN_CALL = re.compile(r"<[\w｜|/]|\[TOOL_CALL|^\s*[\[{]|^\s*```\s*(?:json|tool\w*)?\s*$")


class TextBuffer:
    """Buffers what may be a call in a streamed reply; only whole lines before the first such line are shown."""

    def __init__(self) -> None:
        self._shown = ""
        self._buffer = ""
        self._is_holding = False

    def feed(self, text: str) -> str:
        """The text that can be shown now."""
        self._buffer += text
        before = len(self._shown)
        while not self._is_holding and "\n" in self._buffer:
            line, _, rest = self._buffer.partition("\n")
            self._is_holding = _MAY_BEGIN_CALL.search(line) is not None
            if not self._is_holding:
                self._shown, self._buffer = f"{self._shown}{line}\n", rest
        return self._shown[before:]

    def remaining(self, text: str) -> str:
        """What is still to be shown of the text around the calls, once that is known."""
        if text.startswith(self._shown):
            return text[len(self._shown) :]
        shown = self._shown.rstrip()
        return text[len(shown) :].lstrip() if text.startswith(shown) else ""
