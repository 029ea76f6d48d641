"""Finds the calls that a model wrote into the text of its reply. Runs nothing, and knows no server."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from graph_agent.model.arguments import Arguments, read_arguments
from graph_agent.model.call_forms import MARK, Form, WrittenCall, in_json, in_tags, named_json, offered_as

__all__ = ["UNREADABLE", "Written", "written_calls"]

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
