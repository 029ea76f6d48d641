"""A thread as Markdown. Messages and results stay inside quotes and fences, whatever characters they contain."""

import json
import re
from collections.abc import Iterator

from graph_agent.inspect.transcript import (
    Transcript,
    TranscriptCall,
    call_facts,
    format_tokens,
    format_utc,
    thread_facts,
)
from graph_agent.wording import escape

__all__ = ["markdown_page"]

_SPECIAL_CHARACTERS = re.compile(r"([\\`*_\[\]<>#|!~])")
_TAG_OR_IMAGE = re.compile(r"<(?=[A-Za-z/!?])|!(?=\[)")
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
_WHO = {"user": "You", "assistant": "Assistant"}


def markdown_page(transcript: Transcript) -> Iterator[str]:
    """The lines of the page."""
    yield f"# {_plain(transcript.title)}"
    yield ""
    yield from (f"- {name}: {_plain(value)}" for name, value in thread_facts(transcript).items() if value)
    for number, turn in enumerate(transcript.turns, 1):
        yield from ("", f"## Turn {number}, {format_utc(turn[0].at)}")
        for message in turn:
            if message.text.strip():
                tokens = f" ({format_tokens(message.tokens)})" if any(message.tokens.values()) else ""
                yield from ("", f"**{_WHO.get(message.role, _plain(message.role))}**{tokens}", "")
                yield from (f"> {line}".rstrip() for line in _without_html(message.text))
            for call in message.calls:
                yield from _call(call)


def _call(call: TranscriptCall) -> Iterator[str]:
    record = call.record
    about = f": {_plain(call.about)}" if call.about else ""
    yield from ("", f"### {_plain(str(record.get('tool_name')))}{about}", "")
    facts = ", ".join((f"**{call.word}**", *map(_plain, call_facts(call))))
    yield f"{facts}, `{escape(str(record.get('call_id'))).replace('`', '')}`"
    yield from _fenced("json", json.dumps(record.get("arguments"), ensure_ascii=False, indent=2))
    if call.diff:
        yield from _fenced("diff", call.diff)
    if call.result:
        yield from _fenced("text", call.result)


def _fenced(kind: str, text: str) -> Iterator[str]:
    safe = escape(text, multiline=True).removesuffix("\n")
    longest = max((len(run) for run in re.findall(r"`+", safe)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from ("", f"{fence}{kind}", *safe.split("\n"), fence)


def _plain(text: str) -> str:
    """The text on one line, with Markdown characters escaped."""
    return _SPECIAL_CHARACTERS.sub(r"\\\1", escape(" ".join(text.split())))


def _without_html(text: str) -> Iterator[str]:
    """The text as Markdown, but tags become text and images links, so that nothing is loaded."""
    fence = ""
    for line in escape(text, multiline=True).split("\n"):
        found = _FENCE.match(line)
        if found and not fence:
            fence = found[1]
        elif found and found[1].startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
        elif not fence:
            yield _TAG_OR_IMAGE.sub(lambda sign: f"\\{sign[0]}", line)
            continue
        yield line
