"""A thread as one HTML page: it loads nothing, runs nothing, and shows whatever was said as text."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from html import escape as quoted

from graph_agent.cli.escape import escape
from graph_agent.cli.pages.style import STYLE
from graph_agent.cli.pages.told import Said, Told, ToldCall, call_facts, moment, thread_facts, tokens_text

__all__ = ["html_page"]

_OWN_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)
_FOLDED_FROM = 16
"""Lines from which on a result is folded away."""
_LINE_KINDS = {"+": "add", "-": "del", "@": "hunk", "\\": "head"}
_WHO = {"user": "You", "assistant": "Assistant"}


def html_page(told: Told, picture: str) -> Iterator[str]:
    """The pieces of the page.

    Args:
        picture: the graph as SVG, made by this program: it is the one thing that is not quoted.
    """
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_policy(STYLE, *_OWN_STYLE.findall(picture))}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="referrer" content="no-referrer">'
    yield f"<title>{_safe(told.title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>"
    yield f"<h1>{_safe(told.title)}</h1>\n<dl>"
    yield from (f"<dt>{name}</dt><dd>{_safe(value)}</dd>" for name, value in thread_facts(told).items() if value)
    yield "</dl>"
    numbers = {id(call): number for number, call in enumerate(told.calls, 1)}
    if told.calls:
        yield from _timeline(told.calls)
    for number, turn in enumerate(told.turns, 1):
        yield f'<h2 id="turn-{number}">Turn {number} <small>{_safe(moment(turn[0].at))}</small></h2>'
        for message in turn:
            yield from _message(message, numbers)
    yield f'<h2>Where it stands in the graph</h2>\n<div class="graph">{picture}</div>'
    yield "<footer>Written by graph-agent. The page loads nothing from elsewhere.</footer>\n</body>\n</html>"


def _policy(*styles: str) -> str:
    """Forbids the page everything but its own styles, each by its digest."""
    digests = (base64.b64encode(hashlib.sha256(style.encode()).digest()).decode() for style in styles)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; style-src {allowed}; base-uri 'none'; form-action 'none'"


def _timeline(calls: Sequence[ToldCall]) -> Iterator[str]:
    times = [_span(call) for call in calls]
    known = [time for span in times if span for time in span]
    begin, end = (min(known), max(known)) if known else (0.0, 0.0)
    heads = "".join(f"<th>{head}</th>" for head in ("#", "tool", "about", "status", "took", "when"))
    yield f"<h2>Calls</h2>\n<table>\n<tr>{heads}</tr>"
    for number, (call, span) in enumerate(zip(calls, times, strict=True), 1):
        status = _safe(str(call.record.get("status")))
        took = "" if call.seconds is None else f"{call.seconds:.1f} s"
        yield (
            f'<tr><td><a href="#call-{number}">{number}</a></td>'
            f"<td>{_safe(str(call.record.get('tool_name')))}</td>"
            f'<td class="about">{_safe(_shortened(call.about))}</td>'
            f'<td class="{status}">{status}</td><td>{took}</td>'
            f'<td class="time">{_bar(span, begin, end)}</td></tr>'
        )
    yield "</table>"


def _span(call: ToldCall) -> tuple[float, float] | None:
    if call.seconds is None:
        return None
    started = datetime.fromisoformat(str(call.record["started_at"])).timestamp()
    return started, started + call.seconds


def _bar(span: tuple[float, float] | None, begin: float, end: float) -> str:
    if span is None:
        return ""
    whole = max(end - begin, 0.001)
    left = 98 * (span[0] - begin) / whole
    width = max(98 * (span[1] - span[0]) / whole, 2.0)
    rect = f'<rect x="{left:.2f}" y="0" width="{min(width, 100 - left):.2f}" height="10"/>'
    return f'<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">{rect}</svg>'


def _message(message: Said, numbers: dict[int, int]) -> Iterator[str]:
    role = message.role if message.role in _WHO else "other"
    if message.text.strip():
        spent = f" <small>{tokens_text(message.tokens)}</small>" if any(message.tokens.values()) else ""
        who = _WHO.get(message.role, _safe(message.role))
        text = _safe(message.text.strip("\n"))
        yield f'<div class="said {role}"><div class="who">{who}{spent}</div><div class="text">{text}</div></div>'
    for call in message.calls:
        yield from _call(call, numbers[id(call)])


def _call(call: ToldCall, number: int) -> Iterator[str]:
    record = call.record
    status = _safe(str(record.get("status")))
    yield f'<div class="call {status}" id="call-{number}">'
    yield f"<p><strong>{_safe(str(record.get('tool_name')))}</strong> <code>{_safe(call.about)}</code></p>"
    facts = " · ".join(map(_safe, (*call_facts(call), str(record.get("call_id")))))
    yield f'<p class="facts"><span class="status">{status}</span> · {facts}</p>'
    arguments = json.dumps(record.get("arguments"), ensure_ascii=False, indent=2)
    yield f"<details><summary>Arguments</summary><pre>{_safe(arguments)}</pre></details>"
    if call.diff:
        yield f'<pre class="diff">{"".join(_diff(call.diff))}</pre>'
    if call.result.strip():
        yield _result(call.result.strip("\n"))
    yield "</div>"


def _diff(diff: str) -> Iterator[str]:
    for line in diff.removesuffix("\n").split("\n"):
        is_head = line.startswith(("--- ", "+++ "))
        kind = "head" if is_head else _LINE_KINDS.get(line[:1], "")
        yield f'<span class="{kind}">{_safe(line)}</span>' if kind else f"<span>{_safe(line)}</span>"


def _result(text: str) -> str:
    lines = text.count("\n") + 1
    if lines < _FOLDED_FROM:
        return f"<pre>{_safe(text)}</pre>"
    return f"<details><summary>Result, {lines} lines</summary><pre>{_safe(text)}</pre></details>"


def _shortened(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:99]}…"


def _safe(text: str) -> str:
    """The text as text: what a browser would obey, hide or turn round becomes visible."""
    return quoted(escape(text, multiline=True))
