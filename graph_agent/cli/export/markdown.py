"""A thread as Markdown. What was said stays inside quotes and fences, whatever signs it holds."""

import json
import re
from collections.abc import Iterator

from graph_agent.cli.export.transcript import (
    Transcript,
    TranscriptCall,
    TranscriptMessage,
    call_facts,
    format_tokens,
    format_utc,
    thread_facts,
)
from graph_agent.cli.render.escape import escape

__all__ = ["markdown_page"]

_SIGNS = re.compile(r"([\\`*_\[\]<>#|!~])")
_TAG_OR_PICTURE = re.compile(r"<(?=[A-Za-z/!?])|!(?=\[)")
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
_WHO = {"user": "You", "assistant": "Assistant"}


def markdown_page(told: Transcript) -> Iterator[str]:
    """The lines of the page."""
    yield f"# {_plain(told.title)}"
    yield ""
    for name, value in thread_facts(told).items():
        if value:
            yield f"- {name}: {_plain(value)}"
    for number, turn in enumerate(told.turns, 1):
        yield ""
        yield f"## Turn {number}, {format_utc(turn[0].at)}"
        for message in turn:
            yield from _message(message)


def _message(message: TranscriptMessage) -> Iterator[str]:
    spent = f" ({format_tokens(message.tokens)})" if any(message.tokens.values()) else ""
    if message.text.strip():
        yield ""
        yield f"**{_WHO.get(message.role, _plain(message.role))}**{spent}"
        yield ""
        yield from (f"> {line}".rstrip() for line in _tamed(message.text))
    for call in message.calls:
        yield from _call(call)


def _call(call: TranscriptCall) -> Iterator[str]:
    record = call.record
    about = f": {_plain(call.about)}" if call.about else ""
    yield ""
    yield f"### {_plain(str(record.get('tool_name')))}{about}"
    yield ""
    facts = ", ".join((f"**{record.get('status')}**", *map(_plain, call_facts(call))))
    yield f"{facts}, `{escape(str(record.get('call_id'))).replace('`', '')}`"
    arguments = json.dumps(record.get("arguments"), ensure_ascii=False, indent=2)
    yield from _fenced("json", arguments)
    if call.diff:
        yield from _fenced("diff", call.diff)
    if call.result:
        yield from _fenced("text", call.result)


def _fenced(kind: str, text: str) -> Iterator[str]:
    safe = escape(text, multiline=True).removesuffix("\n")
    longest = max((len(run) for run in re.findall(r"`+", safe)), default=0)
    fence = "`" * max(3, longest + 1)
    yield ""
    yield f"{fence}{kind}"
    yield from safe.split("\n")
    yield fence


def _plain(text: str) -> str:
    """The text on one line, none of its signs followed."""
    return _SIGNS.sub(r"\\\1", escape(" ".join(text.split())))


def _tamed(text: str) -> Iterator[str]:
    """The text as the Markdown it is, but its tags are text and its pictures are links: nothing is loaded by it."""
    fence = ""
    for line in escape(text, multiline=True).split("\n"):
        found = _FENCE.match(line)
        if found and not fence:
            fence = found[1]
        elif found and found[1].startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
        elif not fence:
            yield _TAG_OR_PICTURE.sub(lambda sign: f"\\{sign[0]}", line)
            continue
        yield line
