"""Messages of a conversation as lines, and what they cost in tokens."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from graph_agent.cli.escape import escape
from graph_agent.cli.views.counting import held_back
from graph_agent.cli.views.screen import colored
from graph_agent.inspect import TranscriptEntry
from graph_agent.ports.searchable import plain_text

__all__ = ["message_lines", "tokens_of"]

_ROLES = {"human": "user", "ai": "assistant"}
_FIRST_LINES = 8


def message_lines(role: str, body: Mapping[str, Any], *, full: bool) -> Iterator[str]:
    """One message: who, what, and the calls it asks for. Long ones end early unless `full`."""
    shown = escape(_ROLES.get(role, role))
    about = f" {escape(str(body['tool_call_id']))}" if body.get("tool_call_id") else ""
    yield f"{colored(shown, 'heading')}{about}"
    lines = escape(plain_text(body.get("content")), multiline=True).split("\n")
    kept = lines if full else lines[:_FIRST_LINES]
    yield from (f"  {line}" for line in kept if line or full or len(kept) > 1)
    if len(lines) > len(kept):
        yield f"  {held_back(len(lines) - len(kept), 'more line')}"
    for call in body.get("tool_calls") or []:
        arguments = json.dumps(call.get("args"), ensure_ascii=False)
        name, call_id = escape(str(call.get("name"))), escape(str(call.get("id")))
        yield f"  → {name} {call_id} {_short(escape(arguments), full=full)}"


def tokens_of(transcript: Iterable[TranscriptEntry]) -> dict[str, int]:
    """Tokens of all requests, as the provider told them."""
    total = {"input_tokens": 0, "output_tokens": 0}
    for entry in transcript:
        usage = entry.body.get("usage")
        for name in total:
            told = usage.get(name) if isinstance(usage, dict) else None
            total[name] += told if isinstance(told, int) else 0
    return total


def _short(text: str, *, full: bool) -> str:
    return text if full or len(text) <= 120 else text[:119] + "…"
