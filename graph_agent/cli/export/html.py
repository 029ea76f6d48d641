"""A thread as one self-contained HTML page: it loads nothing, runs nothing, and shows all content as text."""

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from html import escape as quoted

from graph_agent.app.reader import GraphView, format_mermaid
from graph_agent.inspect.transcript import (
    Transcript,
    TranscriptCall,
    TranscriptMessage,
    call_facts,
    diff_line_kind,
    format_tokens,
    format_utc,
    thread_facts,
)
from graph_agent.wording import escape

__all__ = ["STYLE", "html_page"]

STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --dim: #59636e; --page: #fff; --box: #f6f8fa; --edge: #d1d9e0;
  --good: #1a7f37; --bad: #cf222e; --wait: #9a6700; --add: #dafbe1; --del: #ffebe9; --hunk: #ddf4ff;
  --you: #ddf4ff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --dim: #9198a1; --page: #0d1117;
  --box: #151b23; --edge: #3d444d; --good: #3fb950; --bad: #f85149; --wait: #d29922; --add: #12361f;
  --del: #3c1618; --hunk: #0c2d4d; --you: #0c2d4d; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1.5rem 1rem 4rem; color: var(--ink); background: var(--page);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .75rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2.25rem 0 .75rem; padding-bottom: .25rem; border-bottom: 1px solid var(--edge); }
h2 small, .who small { color: var(--dim); font-weight: 400; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0; }
dt { color: var(--dim); }
dd { margin: 0; overflow-wrap: anywhere; }
a { color: inherit; text-decoration-color: var(--dim); }
pre { margin: .5rem 0 0; padding: .6rem .75rem; overflow-x: auto; border-radius: 6px; background: var(--page);
  border: 1px solid var(--edge); font: 13px/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
code { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
details { margin-top: .5rem; }
summary { cursor: pointer; color: var(--dim); }
table { width: 100%; border-collapse: collapse; font-size: .9rem; }
th, td { padding: .25rem .5rem; text-align: left; border-bottom: 1px solid var(--edge); vertical-align: top; }
th { color: var(--dim); font-weight: 500; }
td.about { overflow-wrap: anywhere; }
td.time { width: 22%; min-width: 6rem; }
.said { margin: .75rem 0; }
.who { font-weight: 600; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; }
.user .text { padding: .5rem .75rem; border-radius: 6px; background: var(--you); }
.call { margin: .75rem 0; padding: .6rem .75rem; border: 1px solid var(--edge); border-left: 4px solid var(--dim);
  border-radius: 6px; background: var(--box); }
.call p { margin: 0; overflow-wrap: anywhere; }
.facts { color: var(--dim); font-size: .9rem; }
.status { font-weight: 600; }
.success { border-left-color: var(--good); } .success .status, td.success { color: var(--good); }
.error { border-left-color: var(--bad); } .error .status, td.error { color: var(--bad); }
.interrupted, .awaiting_approval, .executing, .pending { border-left-color: var(--wait); }
.interrupted .status, .awaiting_approval .status, .executing .status, .pending .status, td.interrupted,
td.awaiting_approval, td.executing, td.pending { color: var(--wait); }
.diff span { display: block; min-height: 1.45em; }
.diff .add { background: var(--add); }
.diff .del { background: var(--del); }
.diff .hunk { background: var(--hunk); }
.diff .head { color: var(--dim); }
tr.current td { font-weight: 600; color: var(--wait); }
svg.bar { display: block; width: 100%; height: .6rem; margin-top: .45rem; background: var(--box); }
svg.bar rect { fill: var(--dim); stroke: none; }
footer { margin-top: 3rem; color: var(--dim); font-size: .85rem; }
"""

_COLLAPSED_FROM = 16
"""Lines from which on a result is collapsed."""
_WHO = {"user": "You", "assistant": "Assistant"}


def html_page(transcript: Transcript, graph: GraphView) -> Iterator[str]:
    """The page, piece by piece."""
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    # Only the page's own style sheet is allowed, by its digest.
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="referrer" content="no-referrer">'
    yield f"<title>{_safe(transcript.title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>"
    yield f"<h1>{_safe(transcript.title)}</h1>\n<dl>"
    yield from (
        f"<dt>{name}</dt><dd>{_safe(value)}</dd>" for name, value in thread_facts(transcript).items() if value
    )
    yield "</dl>"
    numbers = {id(call): number for number, call in enumerate(transcript.calls, 1)}
    if transcript.calls:
        yield from _timeline(transcript.calls)
    for number, turn in enumerate(transcript.turns, 1):
        yield f'<h2 id="turn-{number}">Turn {number} <small>{_safe(format_utc(turn[0].at))}</small></h2>'
        for message in turn:
            if message.text.strip():
                yield _message(message)
            for call in message.calls:
                yield from _call(call, numbers[id(call)])
    yield "<h2>Graph</h2>\n<table>\n<tr><th>node</th><th>visits</th><th>next</th></tr>"
    for node in graph.nodes:
        mark, css = ("current", ' class="current"') if node.is_current else ("", "")
        visits = "" if node.visits is None else node.visits
        yield f"<tr{css}><td>{_safe(node.name)}</td><td>{visits}</td><td>{mark}</td></tr>"
    mermaid = _safe("\n".join(format_mermaid(graph)))
    yield f"</table>\n<details><summary>Mermaid</summary><pre>{mermaid}</pre></details>"
    yield "<footer>Written by graph-agent. The page loads nothing from elsewhere.</footer>\n</body>\n</html>"


def _timeline(calls: Sequence[TranscriptCall]) -> Iterator[str]:
    """A table of all calls, each with a bar that shows when it ran."""
    spans: list[tuple[float, float] | None] = []
    for call in calls:
        span = None
        if call.seconds is not None:
            begin = datetime.fromisoformat(str(call.record["started_at"])).timestamp()
            span = (begin, begin + call.seconds)
        spans.append(span)
    times = [time for span in spans if span for time in span]
    first, whole = (min(times), max(max(times) - min(times), 0.001)) if times else (0.0, 0.001)
    heads = "".join(f"<th>{head}</th>" for head in ("#", "tool", "about", "status", "took", "when"))
    yield f"<h2>Calls</h2>\n<table>\n<tr>{heads}</tr>"
    for number, (call, span) in enumerate(zip(calls, spans, strict=True), 1):
        status, word = _safe(str(call.record.get("status"))), _safe(call.word)
        took = "" if call.seconds is None else f"{call.seconds:.1f} s"
        about = call.about if len(call.about) <= 100 else f"{call.about[:99]}…"
        bar = ""
        if span is not None:
            left = 98 * (span[0] - first) / whole
            width = min(max(98 * (span[1] - span[0]) / whole, 2.0), 100 - left)
            rect = f'<rect x="{left:.2f}" y="0" width="{width:.2f}" height="10"/>'
            bar = (
                f'<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">{rect}</svg>'
            )
        yield (
            f'<tr><td><a href="#call-{number}">{number}</a></td>'
            f"<td>{_safe(str(call.record.get('tool_name')))}</td>"
            f'<td class="about">{_safe(about)}</td>'
            f'<td class="{status}">{word}</td><td>{took}</td>'
            f'<td class="time">{bar}</td></tr>'
        )
    yield "</table>"


def _message(message: TranscriptMessage) -> str:
    role = message.role if message.role in _WHO else "other"
    tokens = f" <small>{format_tokens(message.tokens)}</small>" if any(message.tokens.values()) else ""
    who = _WHO.get(message.role, _safe(message.role))
    text = _safe(message.text.strip("\n"))
    return f'<div class="said {role}"><div class="who">{who}{tokens}</div><div class="text">{text}</div></div>'


def _call(call: TranscriptCall, number: int) -> Iterator[str]:
    record = call.record
    status = _safe(str(record.get("status")))
    yield f'<div class="call {status}" id="call-{number}">'
    yield f"<p><strong>{_safe(str(record.get('tool_name')))}</strong> <code>{_safe(call.about)}</code></p>"
    facts = " · ".join(map(_safe, (*call_facts(call), str(record.get("call_id")))))
    yield f'<p class="facts"><span class="status">{_safe(call.word)}</span> · {facts}</p>'
    arguments = json.dumps(record.get("arguments"), ensure_ascii=False, indent=2)
    yield f"<details><summary>Arguments</summary><pre>{_safe(arguments)}</pre></details>"
    if call.diff:
        diff = "".join(map(_diff_line, call.diff.removesuffix("\n").split("\n")))
        yield f'<pre class="diff">{diff}</pre>'
    if call.result.strip():
        result = call.result.strip("\n")
        lines = result.count("\n") + 1
        text = f"<pre>{_safe(result)}</pre>"
        is_long = lines >= _COLLAPSED_FROM
        yield f"<details><summary>Result, {lines} lines</summary>{text}</details>" if is_long else text
    yield "</div>"


def _diff_line(line: str) -> str:
    kind = diff_line_kind(line)
    return f'<span class="{kind}">{_safe(line)}</span>' if kind else f"<span>{_safe(line)}</span>"


def _safe(text: str) -> str:
    """Quoted text: markup, invisible and direction-changing characters become visible."""
    return quoted(escape(text, multiline=True))
