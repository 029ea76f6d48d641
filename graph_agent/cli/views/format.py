"""How long ago something was, in words, and how a person writes a span of time.

Numbers of things in words.

Names in a row, as a line shows them. Knows nothing of what they name.

What requests used, as a line: tokens, marked where estimated, and what they cost, where that is known.

Messages of a conversation as lines, and what they cost in tokens.

Asks yes or no on a command's own input, where no chat is: anything but yes is no.

Which database a read-only command is about, and whose threads are meant when no id is given.

The plan of the work as a checklist: plain lines, escaped already. Knows neither terminal nor thread.

One line about a compaction.

What became of a background shell, on one line.
"""

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.table import colorize, format_time
from graph_agent.config.paths import database_path
from graph_agent.errors import UsageError
from graph_agent.events import Compacted, ShellEnded, ShellKept
from graph_agent.inspect import Reader, TranscriptEntry
from graph_agent.ports.storage import plain_text
from graph_agent.ports.usage import told_usage

__all__ = [
    "age_seconds",
    "confirm",
    "default_workspace",
    "format_age",
    "format_compaction",
    "format_cost",
    "format_cost_lines",
    "format_count",
    "format_message",
    "format_names",
    "format_omitted",
    "format_shell",
    "format_short_usage",
    "format_time_and_age",
    "format_todo",
    "format_usage",
    "open_reader",
    "parse_duration",
    "resolve_database",
    "sum_tokens",
]

_UNITS = (("d", 86_400, "d"), ("h", 3_600, "h"), ("m", 60, "min"), ("s", 1, "s"))


def format_age(iso: str | None) -> str:
    """How long ago a stored time was: `3 min ago`; as it is where it is no time."""
    seconds = age_seconds(iso)
    if seconds is None:
        return iso or ""
    for _, size, word in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {word} ago"
    return "just now"


def age_seconds(iso: str | None) -> float | None:
    """Seconds since a stored time; None where it is no time."""
    try:
        return max((datetime.now(UTC) - datetime.fromisoformat(iso or "")).total_seconds(), 0)
    except (ValueError, TypeError):
        return None


def format_time_and_age(iso: str | None) -> str:
    """A stored time as the local clock shows it, with how long ago that was."""
    return f"{format_time(iso)}, {format_age(iso)}" if age_seconds(iso) is not None else iso or ""


def parse_duration(written: str, option: str) -> float:
    """Seconds of a span such as `90s`, `10m`, `2h` or `3d`.

    Raises:
        UsageError: it is no such span.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", written.strip())
    if found is None:
        raise UsageError(f"{option} {written!r} is no span of time; write a number and s, m, h or d, such as 10m")
    sizes = {letter: size for letter, size, _ in _UNITS}
    return float(found[1]) * sizes[found[2]]


def format_count(count: int, word: str) -> str:
    """The number with the word, in the plural where it is not one."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def format_omitted(count: int, word: str) -> str:
    """The line in place of what only --full shows."""
    return f"… {format_count(count, word)}; --full shows {'it' if count == 1 else 'them'}"


_SHOWN = 8


def format_names(names: Sequence[str], more: int = 0) -> str:
    """The first of the names and how many there are besides; `more` were never named."""
    shown, others = names[:_SHOWN], len(names[_SHOWN:]) + more
    listed = ", ".join(shown) or "nothing that git sees"
    return f"{listed} and {others} more" if others else listed


_THOUSAND = 1_000
_MILLION = 1_000_000
_CENT = 0.01


def format_cost_lines(turn: Mapping[str, Any] | None, thread: Mapping[str, Any] | None) -> Iterator[str]:
    """What the last turn and the whole thread used, as stored, and how to let the cost be known."""
    for name, used in (("this turn", turn), ("this thread", thread)):
        told = told_usage(used)
        count = told["requests"]
        yield f"{name}: {count} {'request' if count == 1 else 'requests'}, {format_usage(told)}"
    if told_usage(thread)["cost"] is None:
        yield 'A price is missing: [prices."MODEL"] in config.toml, with input and output per million tokens.'


def format_usage(usage: Mapping[str, Any]) -> str:
    """All that is known; the usage as `told_usage` tells it."""
    mark = "~" if usage["estimated"] else ""
    cached, reasoning = usage["cached_input_tokens"], usage["reasoning_tokens"]
    into = f"{mark}{usage['input_tokens']:,} in{f' ({cached:,} cached)' if cached else ''}"
    out = f"{mark}{usage['output_tokens']:,} out{f' ({reasoning:,} reasoning)' if reasoning else ''}"
    return f"{into}, {out}, cost {format_cost(usage)}"


def format_short_usage(usage: Mapping[str, Any]) -> str:
    """The total for a line that has little room."""
    mark = "~" if usage["estimated"] else ""
    return f"{mark}{_short(usage['total_tokens'])} tokens · cost {format_cost(usage)}"


def format_cost(usage: Mapping[str, Any]) -> str:
    """The amount with its currency; `unknown` where a price is missing, `~` where the tokens are estimated."""
    cost = usage["cost"]
    if cost is None:
        return "unknown"
    if not cost:
        return "0"
    mark = "~" if usage["estimated"] else ""
    return f"{mark}{cost:.{2 if cost >= 1 else 4 if cost >= _CENT else 6}f} {usage['currency'] or ''}".rstrip()


def _short(count: int) -> str:
    if count < _THOUSAND:
        return str(count)
    return f"{count / _THOUSAND:.1f}k" if count < _MILLION else f"{count / _MILLION:.2f}M"


_ROLES = {"human": "user", "ai": "assistant"}
_FIRST_LINES = 8


def format_message(role: str, body: Mapping[str, Any], *, full: bool) -> Iterator[str]:
    """One message: who, what, and the calls it asks for. Long ones end early unless `full`."""
    shown = escape(_ROLES.get(role, role))
    about = f" {escape(str(body['tool_call_id']))}" if body.get("tool_call_id") else ""
    yield f"{colorize(shown, 'heading')}{about}"
    lines = escape(plain_text(body.get("content")), multiline=True).split("\n")
    kept = lines if full else lines[:_FIRST_LINES]
    yield from (f"  {line}" for line in kept if line or full or len(kept) > 1)
    if len(lines) > len(kept):
        yield f"  {format_omitted(len(lines) - len(kept), 'more line')}"
    for call in body.get("tool_calls") or []:
        arguments = json.dumps(call.get("args"), ensure_ascii=False)
        name, call_id = escape(str(call.get("name"))), escape(str(call.get("id")))
        yield f"  → {name} {call_id} {_short_messages(escape(arguments), full=full)}"


def sum_tokens(transcript: Iterable[TranscriptEntry]) -> dict[str, int]:
    """Tokens of all requests, as the provider told them."""
    total = {"input_tokens": 0, "output_tokens": 0}
    for entry in transcript:
        usage = entry.body.get("usage")
        for name in total:
            told = usage.get(name) if isinstance(usage, dict) else None
            total[name] += told if isinstance(told, int) else 0
    return total


def _short_messages(text: str, *, full: bool) -> str:
    return text if full or len(text) <= 120 else text[:119] + "…"


def confirm(question: str, *, otherwise: str) -> bool:
    """Whether the answer is yes.

    Raises:
        UsageError: nobody is there to answer; the message ends with `otherwise`, the way to do without.
    """
    sys.stdout.write(f"{question} [y/N] ")
    sys.stdout.flush()
    answer = sys.stdin.readline()
    if not answer:
        sys.stdout.write("\n")
        raise UsageError(f"nobody answered, so nothing was changed; {otherwise}")
    return answer.strip().lower() in ("y", "yes")


def resolve_database(flag: str | None) -> Path:
    """The database file of the flag, the environment or the data folder."""
    return database_path(os.environ, flag)


def default_workspace(flag: str | None) -> str | None:
    """The folder whose newest thread an absent id means; None, so any, where a file was named."""
    return None if flag else str(Path.cwd())


def open_reader(database: Path) -> Reader:
    """The database opened for reading; what is to be known of how that went is told on stderr."""
    reader = Reader.open(database)
    if reader.note:
        sys.stderr.write(f"graph-agent: {escape(reader.note)}\n")
    return reader


_MARKS = {"completed": "[x]", "in_progress": "[>]"}


def format_todo(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line a step: done, under way, or still to do."""
    return [escape(f"{_MARKS.get(item.get('status', ''), '[ ]')} {item.get('content', '')}") for item in items]


_HOW = {
    "references": "old results as references",
    "summary": "summed up by the model",
    "outline": "summed up without a model",
}


def format_compaction(event: Compacted) -> str:
    """How far the conversation that the model is told shrank, and how."""
    return f"compacted: {event.tokens_before:,} -> {event.tokens_after:,} tokens ({_HOW[event.how]})"


_COMMAND_CHARS = 80


def format_shell(event: ShellEnded | ShellKept) -> str:
    """The line, with the command last."""
    first, *more = event.command.strip().split("\n")
    command = first[:_COMMAND_CHARS] + ("…" if more or len(first) > _COMMAND_CHARS else "")
    state = event.state if isinstance(event, ShellEnded) else "goes on"
    return f"background shell {event.shell_id}: {state}  $ {command}"
