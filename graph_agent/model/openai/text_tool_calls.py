"""Finds the calls that a model wrote into the text of its reply. Runs nothing, and knows no server.

One call as models write it into text: as a JSON object, or as tags. Knows no reply around it.

Holds back what may be a call while a reply streams in as text, so that nobody is shown one. Knows no calls.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from graph_agent.model.openai.tool_call_chunks import Arguments, read_arguments

__all__ = [
    "MARK",
    "UNREADABLE",
    "Form",
    "HeldText",
    "Written",
    "WrittenCall",
    "in_json",
    "in_tags",
    "named_json",
    "offered_as",
    "written_calls",
]

_NAMES = ("name", "tool_name", "tool", "function", "function_name", "action", "recipient_name")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "tool_input", "action_input", "params", "kwargs")
_LISTS = ("tool_calls", "tool_uses", "calls")

_NAME_IN_BROKEN = re.compile(r'"(?:name|tool|tool_name|function)"\s*:\s*"([^"\\]{1,64})"')

MARK = r"(?:[｜|]+\s*\w+\s*[｜|]+|antml:)?"
"""What some models put before the names of their tags."""

_INVOKED = re.compile(
    rf"<{MARK}(?:invoke|function)(?:\s+name\s*=\s*|=)\"?([^\">\s]{{1,80}})\"?\s*>(.*?)"
    rf"(?:</{MARK}(?:invoke|function)>|(?=<{MARK}(?:invoke|function)[ =])|\Z)",
    re.DOTALL,
)
"""`<invoke name="x">`, as it stands or marked as DeepSeek does, and `<function=x>`."""
_PARAMETER = re.compile(
    rf"<{MARK}parameter(?:\s+name\s*=\s*|=)\"?([^\">\s]{{1,80}})\"?([^>]*)>(.*?)</{MARK}parameter>", re.DOTALL
)
_OPENED_PARAMETER = re.compile(rf"<{MARK}parameter\b")
_ENDED_PARAMETER = re.compile(rf"</{MARK}parameter>")
_HALF_KEYED = re.compile(r"</?arg_(?:key|value)\b")
_AROUND_NAME = re.compile(r"\A(?:functions\.)?(.*?)(?::\d+|<\|.*)?\Z", re.DOTALL)
"""What models leave standing around a name: the namespace, the number of the call, a token of their own format."""
_KEYED = re.compile(r"<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>", re.DOTALL)

_NAMED = re.compile(r"\s*([\w.-]{1,80})(?:\[CALL_ID\]\w+)?(?:\[ARGS\])?\s*(?=\{)")

_NO_END = "the call has no end; send the whole of it again"

_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call that stood in the text."""

    name: str
    arguments: Arguments


@dataclass(frozen=True, slots=True)
class Form:
    """What one piece of text came to."""

    calls: tuple[WrittenCall, ...] = ()
    end: int = 0
    """How far into the text it reached."""


def in_json(text: str) -> Form:
    """The calls of the JSON values that the text begins with; one that is broken is a call with a complaint."""
    calls: list[WrittenCall] = []
    position = 0
    while found := re.compile(r"[\s,;]*(?=[\[{])").match(text, position):
        try:
            value, position = _DECODER.raw_decode(text, found.end())
        except (ValueError, RecursionError) as error:
            broken = _broken(text[found.end() :], error)
            return Form((*calls, *broken), len(text) if broken else position)
        calls += _calls_of(value)
    return Form(tuple(calls), position)


def in_tags(text: str) -> tuple[WrittenCall, ...]:
    """The calls written as tags within the text."""
    invoked = tuple(WrittenCall(match[1], _tagged_arguments(match)) for match in _INVOKED.finditer(text))
    keyed = _KEYED.findall(text)
    if invoked or not keyed:
        return invoked
    name = text.strip().split("\n", 1)[0].split("<", 1)[0].strip()
    if _HALF_KEYED.search(_KEYED.sub("", text)):
        return (WrittenCall(name, Arguments(complaint=_NO_END)),)
    return (WrittenCall(name, Arguments({key.strip(): value for key, value in keyed})),)


def named_json(text: str) -> tuple[WrittenCall, ...]:
    """Calls of which each is a name with its arguments behind it, `ls{"path": "."}`."""
    calls: list[WrittenCall] = []
    position = 0
    while named := _NAMED.match(text, position):
        try:
            value, position = _DECODER.raw_decode(text, named.end())
            calls.append(WrittenCall(named[1], read_arguments(value)))
        except (ValueError, RecursionError):
            calls.append(WrittenCall(named[1], read_arguments(text[named.end() :])))
            break
    return tuple(calls)


def offered_as(name: str, offered: Sequence[str]) -> str | None:
    """The tool on offer that is meant, however it is spelled and marked; None where there is no telling."""
    bare = name.strip()
    for told in (bare, _AROUND_NAME.sub(r"\1", bare)):
        same = [known for known in offered if known.casefold() == told.casefold()]
        if told in offered or len(same) == 1:
            return told if told in offered else same[0]
    return None


def _calls_of(value: Any) -> list[WrittenCall]:
    if isinstance(value, list):
        return [call for item in value for call in _calls_of(item)]
    if not isinstance(value, Mapping):
        return []
    for key in _LISTS:
        if isinstance(value.get(key), list):
            return _calls_of(value[key])
    if isinstance(inner := value.get("function"), Mapping):
        return _calls_of(inner)
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), None)
    given = next((value[key] for key in _ARGUMENTS if key in value), None)
    if name is None:
        return _unnamed(value)
    is_call = given is not None or len(value) == 1 or "arguments" in value
    return [WrittenCall(name.removeprefix("functions."), read_arguments(given))] if is_call else []


def _unnamed(value: Mapping[str, Any]) -> list[WrittenCall]:
    """What was meant as a call and lacks a name that is a text: the model is told, where nothing else was meant."""
    if not any(key in value for key in _ARGUMENTS) or not any(key in value for key in _NAMES):
        return []
    named = next(value[key] for key in _NAMES if key in value)
    told = f"the name of the tool must be a text, not {json.dumps(named)[:64]}; send the call again with its name"
    return [WrittenCall("", Arguments(complaint=told))]


def _broken(text: str, error: Exception) -> tuple[WrittenCall, ...]:
    named = _NAME_IN_BROKEN.search(text)
    if named is None:
        return ()
    told = f"the call is not valid JSON ({error}); send it again as one JSON object with name and arguments"
    return (WrittenCall(named[1], Arguments(complaint=told)),)


def _tagged_arguments(call: re.Match[str]) -> Arguments:
    body = call[2].strip()
    if body.startswith("{"):
        return read_arguments(body)
    is_whole = call.end() < len(call.string) or call[0].endswith(">")
    around = _PARAMETER.sub("", body)
    if not is_whole or _OPENED_PARAMETER.search(around):
        return Arguments(complaint=_NO_END)
    if _ENDED_PARAMETER.search(around):
        return Arguments(complaint="where a parameter ends cannot be told; send the call as one JSON object")
    return read_arguments({match[1]: _value(match[2], match[3]) for match in _PARAMETER.finditer(body)})


def _value(attributes: str, text: str) -> Any:
    """A value between tags: JSON only where the tag says that it is no text; tools read numbers from texts."""
    bare = text.removeprefix("\n").removesuffix("\n")
    if 'string="false"' not in attributes:
        return bare
    try:
        return json.loads(bare)
    except (ValueError, RecursionError):
        return bare


_TAG = re.compile(rf"<((?:{MARK})(?:(?i:tool[_-]?calls?|tool_use|function_calls?)|tool))>")
_MEANT = re.compile(r"^[ \t]*<(?:tool[_-]?calls?|tool_use|function_calls?)\b[^<>]*>", re.MULTILINE | re.IGNORECASE)
"""Where a line begins with what announces a call, in whatever form it then comes."""
_MEANT_END = re.compile(r"</(?:tool[_-]?calls?|tool_use|function_calls?)>", re.IGNORECASE)
_LOOSE = re.compile(
    rf"<(?:{MARK})(?:invoke\s+name|function)\s*=.*?(?:</(?:{MARK})(?:invoke|function)>|\Z)", re.DOTALL
)
_FENCE = re.compile(
    r"^[ \t]*(?:```|~~~)[ \t]*(?:json[5c]?|xml|python|text|tool_?calls?|tool_code|tool)?[ \t]*\n", re.MULTILINE
)
_FENCE_END = re.compile(r"\s*^[ \t]*(?:```|~~~)[ \t]*$", re.MULTILINE)
_EMPTY_FENCE = re.compile(r"(?:```|~~~)\w*")
_LISTED = re.compile(r"\[TOOL_CALLS?\]|<\|tool_calls?\|>|<\|python_tag\|>(?=\s*[\[{])|\bfunctools(?=\[)")
_LISTED_END = re.compile(r"\s*(?:\[/TOOL_CALLS?\]|<\|/tool_calls?\|>)|(?=\[TOOL_CALLS?\])")
_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_REASONED = re.compile(r"^Action:[ \t]*([\w.-]{1,80})[ \t]*\n+Action Input:[ \t]*", re.MULTILINE)
"""How models write a call that were trained to think, act and observe in turn."""
_TOKENS = re.compile(
    r"<[｜|]tool[▁_]call[▁_]begin[｜|]>(?:function(?!s\.))?(?:<｜tool▁sep｜>)?([\w.:-]{1,80})\s*"
    r"(?:<｜tool▁sep｜>|<\|tool_call_argument_begin\|>)?\s*(?:```(?:json)?\s*)?"
    r"(.*?)(?:\s*```)?\s*(?:<[｜|]tool[▁_]call[▁_]end[｜|]>|\Z)",
    re.DOTALL,
)
_LEFT_OVER = re.compile(
    rf"</?(?:{MARK})(?:tool_calls?|function_calls?)>|<｜tool▁(?:calls|outputs)▁(?:begin|end)｜>"
    r"|<\|tool_calls_section_(?:begin|end)\|>"
)
_BARE = re.compile(r"(?:\A|\n)[ \t]*(?=[\[{])")
_ANSWERED = re.compile(r"<tool_(?:result|response)\b|^Observation:", re.MULTILINE)
"""Where a model goes on to make up what its own call came to."""


UNREADABLE = WrittenCall(
    "", Arguments(complaint='what stands in the tags is no call; send {"name": ..., "arguments": {...}} in them')
)
"""What was meant as a call and is none: the model is told, for else the reply would pass for an answer."""


@dataclass(frozen=True, slots=True)
class Written:
    """A reply taken apart."""

    calls: tuple[WrittenCall, ...]
    text: str
    """What stood around the calls."""


class _Span(NamedTuple):
    start: int
    end: int
    calls: tuple[WrittenCall, ...]


def written_calls(text: str, offered: Sequence[str]) -> Written:
    """The calls in the text, in their order; a call in plain JSON counts only for a tool that is offered."""
    found: list[_Span] = []
    for find in _FINDERS:
        for span in find(text, offered):
            if span.calls and not any(span.start < taken.end and taken.start < span.end for taken in found):
                found.append(span)
    found = _outside_thoughts(text, found)
    if not found:
        return Written((), text)
    until = _made_up_answer(text, found)
    spans = sorted(span for span in found if span.start < until)
    edges = [0, *(edge for span in spans for edge in (span.start, span.end)), until]
    around = [_LEFT_OVER.sub("", text[start:end]) for start, end in zip(edges[::2], edges[1::2], strict=True)]
    said = "\n\n".join(part for each in around if (part := each.strip()) and not _EMPTY_FENCE.fullmatch(part))
    return Written(tuple(call for span in spans for call in span.calls), said)


def _made_up_answer(text: str, spans: Sequence[_Span]) -> int:
    """Where a made-up answer to a call begins: what follows it rests on nothing."""
    first = min(span.end for span in spans)
    for match in _ANSWERED.finditer(text):
        start = match.start()
        if start >= first and not any(span.start < start < span.end for span in spans):
            return start
    return len(text)


def _outside_thoughts(text: str, spans: list[_Span]) -> list[_Span]:
    """Without what the model only thought of calling. What looks like thinking within a call is part of it."""
    thoughts = [
        match.span()
        for match in _THOUGHT.finditer(text)
        if not any(span.start <= match.start() < span.end for span in spans)
    ]
    return [span for span in spans if not any(start < span.start and span.end <= end for start, end in thoughts)]


def _tagged(text: str, offered: Sequence[str]) -> Iterator[_Span]:  # noqa: ARG001 - the shape of a finder
    for opened in _TAG.finditer(text):
        yield _within(text, opened, re.compile(rf"\s*</{re.escape(opened[1])}>", re.IGNORECASE))


def _listed(text: str, offered: Sequence[str]) -> Iterator[_Span]:  # noqa: ARG001 - the shape of a finder
    for opened in _LISTED.finditer(text):
        yield _within(text, opened, _LISTED_END)


def _fenced(text: str, offered: Sequence[str]) -> Iterator[_Span]:
    for opened in _FENCE.finditer(text):
        span = _within(text, opened, _FENCE_END)
        yield span._replace(calls=_of_offer(span.calls, offered))


def _loose(text: str, offered: Sequence[str]) -> Iterator[_Span]:
    for match in _LOOSE.finditer(text):
        yield _Span(*match.span(), _of_offer(in_tags(match[0]), offered))


def _in_tokens(text: str, offered: Sequence[str]) -> Iterator[_Span]:  # noqa: ARG001 - the shape of a finder
    for match in _TOKENS.finditer(text):
        yield _Span(*match.span(), (WrittenCall(match[1], read_arguments(match[2])),))


def _reasoned(text: str, offered: Sequence[str]) -> Iterator[_Span]:
    for match in _REASONED.finditer(text):
        begins = text[match.end() :]
        form = in_json(begins) if begins.startswith("{") else Form()
        end = form.end or len(begins.split("\nObservation:", 1)[0])
        call = WrittenCall(match[1], read_arguments(begins[:end].strip()))
        yield _Span(match.start(), match.end() + end, _of_offer((call,), offered))


def _bare(text: str, offered: Sequence[str]) -> Iterator[_Span]:
    """Plain JSON with which the reply ends."""
    for match in _BARE.finditer(text):
        form = in_json(text[match.end() :])
        if form.calls and not text[match.end() + form.end :].strip():
            yield _Span(match.start(), len(text), _of_offer(form.calls, offered))
            return


def _unreadable(text: str, offered: Sequence[str]) -> Iterator[_Span]:  # noqa: ARG001 - the shape of a finder
    """Asked last: what the others could read is none of these. An empty pair behind another call means nothing."""
    for number, opened in enumerate(_MEANT.finditer(text)):
        closed = _MEANT_END.search(text, opened.end())
        if not number or text[opened.end() : closed.start() if closed else len(text)].strip():
            yield _Span(opened.start(), closed.end() if closed else len(text), (UNREADABLE,))


_FINDERS: tuple[Callable[[str, Sequence[str]], Iterator[_Span]], ...] = (
    _tagged,
    _loose,
    _listed,
    _in_tokens,
    _reasoned,
    _fenced,
    _bare,
    _unreadable,
)
"""The surest first: what one has found, the next ones leave alone."""


def _within(text: str, opened: re.Match[str], end: re.Pattern[str]) -> _Span:
    """The calls between an opening and its end. Whole JSON is read first: within it an end is none."""
    start = opened.end()
    whole = in_json(text[start:])
    if whole.calls and not any(call.arguments.complaint for call in whole.calls):
        closed = end.match(text, start + whole.end)
        return _Span(opened.start(), closed.end() if closed else start + whole.end, whole.calls)
    closed = end.search(text, start)
    body = text[start : closed.start() if closed else len(text)]
    calls = in_tags(body) or named_json(body) or in_json(body).calls
    return _Span(opened.start(), closed.end() if closed else len(text), calls)


def _of_offer(calls: tuple[WrittenCall, ...], offered: Sequence[str]) -> tuple[WrittenCall, ...]:
    return calls if all(offered_as(call.name, offered) for call in calls) else ()


_MAY_BEGIN_CALL = re.compile(r"<[\w｜|/]|\[TOOL_CALL|^\s*[\[{]|^\s*```\s*(?:json|tool\w*)?\s*$")


class HeldText:
    """Takes text piece by piece and gives whole lines, up to the first that may begin a call."""

    def __init__(self) -> None:
        self._shown = ""
        self._kept = ""
        self._is_holding = False

    def feed(self, text: str) -> str:
        """What can be shown now."""
        self._kept += text
        before = len(self._shown)
        while not self._is_holding and "\n" in self._kept:
            line, _, rest = self._kept.partition("\n")
            self._is_holding = _MAY_BEGIN_CALL.search(line) is not None
            if not self._is_holding:
                self._shown, self._kept = f"{self._shown}{line}\n", rest
        return self._shown[before:]

    def rest(self, text: str) -> str:
        """What is still to be shown once it is known which text stands around the calls."""
        if text.startswith(self._shown):
            return text[len(self._shown) :]
        shown = self._shown.rstrip()
        return text[len(shown) :].lstrip() if text.startswith(shown) else ""
