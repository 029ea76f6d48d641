"""What several views share: text for times, counts, tokens, cost, messages, todo items, shells; questions; keys."""

import contextlib
import json
import os
import re
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from graph_agent.app.reader import read_database
from graph_agent.cli.views.table import colorize, format_time, line_width, wrap_line, wrap_message
from graph_agent.errors import NothingYet, UsageError
from graph_agent.inspect import CallEnd, Reader, describe_end
from graph_agent.inspect.calls import author_words
from graph_agent.ports.stored_text import plain_text
from graph_agent.ports.usage import format_usage, usage_report
from graph_agent.wording import age_seconds, escape, format_age, format_count, format_names

if TYPE_CHECKING:
    from graph_agent.events import Compacted, ShellContinued, ShellEnded, ToolCallFinished
    from graph_agent.graph.context_size import ContextUse

__all__ = [
    "confirm",
    "ended_call",
    "format_compaction",
    "format_context_use",
    "format_cost_lines",
    "format_message",
    "format_omitted",
    "format_shell",
    "format_time_and_age",
    "format_todo",
    "open_reader",
    "parse_duration",
    "read_list",
    "without_echo",
]

T = TypeVar("T")

_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}

_MAX_MESSAGE_LINES = 8
_MAX_ARGUMENT_CHARS = 120
_MAX_COMMAND_CHARS = 80
_ANSWER_WIDTH = 8
_ROLES = {"human": "user", "ai": "assistant"}
_TODO_MARKS = {"completed": "[x]", "in_progress": "[>]"}
_COMPACTION_METHODS = {
    "references": "old results as references",
    "summary": "model summary",
    "outline": "no model summary",
}


_LEAVING_KEYS = (b"q", b"Q", b"\x04")
_ESCAPE = b"\x1b"


@contextlib.contextmanager
def without_echo() -> Iterator[Callable[[float], bool]]:
    """For a view that is redrawn: gives a function that waits so many seconds and says whether q or Esc was hit.

    Keys are neither shown nor left to the shell. If stdin is not a terminal, or another job has it, none are read.
    """
    terminals = [sys.stdin.fileno()] if sys.stdin.isatty() else []
    modes = {one: termios.tcgetattr(one) for one in terminals if os.tcgetpgrp(one) == os.getpgrp()}

    def leaves_within(seconds: float) -> bool:
        if not modes:
            time.sleep(seconds)
            return False
        pressed = [os.read(one, 1024) for one in select.select([*modes], [], [], seconds)[0]]
        return any(not keys or keys == _ESCAPE or keys.endswith(_LEAVING_KEYS) for keys in pressed)

    for terminal in modes:
        tty.setcbreak(terminal, termios.TCSADRAIN)  # A key that was pressed while the program loaded counts.
    try:
        yield leaves_within
    finally:
        for terminal, mode in modes.items():
            with contextlib.suppress(termios.error):  # It is gone.
                termios.tcsetattr(terminal, termios.TCSADRAIN, mode)


def ended_call(event: "ToolCallFinished") -> CallEnd:
    """How a call ended, from its event, for the person in front of the process that reports it."""
    end = describe_end(event.status, event.outcome, author_words(event.decided_by), event.reason)
    return end._replace(by="you") if end.by == "user" else end


def open_reader(database: Path) -> Reader:
    """Open the database for reading; prints the reader's note, if any, on stderr."""
    reader = read_database(database)
    if reader.note:
        sys.stderr.write(f"{wrap_message(escape(f'graph-agent: {reader.note}'))}\n")
    return reader


def read_list(database: Path, read: Callable[[Reader], list[T]]) -> list[T]:
    """What the function reads from the database; nothing if there is no database yet."""
    try:
        with read_database(database) as reader:
            return read(reader)
    except NothingYet:
        return []


def confirm(question: str, *, hint: str = "") -> bool:
    """Ask on stdin; everything but yes means no, and so does the end of stdin if there is no `hint`.

    Raises:
        UsageError: stdin ended. The message ends with the `hint` how to do without an answer.
    """
    lines = wrap_line(f"{question} [y/N]", line_width() or len(question) + _ANSWER_WIDTH)
    sys.stdout.write("\n".join(lines) + " ")
    sys.stdout.flush()
    answer = sys.stdin.readline()
    if not answer and hint:
        sys.stdout.write("\n")
        raise UsageError(f"No answer, so nothing was changed. {hint}")
    return answer.strip().lower() in ("y", "yes")


def format_time_and_age(iso: str | None) -> str:
    """A stored time in local time, and how long ago it was."""
    return f"{format_time(iso)}, {format_age(iso)}" if age_seconds(iso) is not None else iso or ""


def parse_duration(text: str, option: str) -> float:
    """Seconds of a duration such as `90s`, `10m`, `2h`, `3d` or `2w`.

    Raises:
        UsageError: the text is not a duration.
    """
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?)\s*([smhdw])", text.strip().lower())
    if found is None:
        raise UsageError(f"{option} {text!r} is not a duration. Examples: 90s, 10m, 12h, 30d, 2w.")
    return float(found[1]) * _SECONDS[found[2]]


def format_omitted(count: int, noun: str) -> str:
    """The line that stands for what only --full shows."""
    return f"… {format_count(count, noun)}; --full shows {'it' if count == 1 else 'them'}"


def format_cost_lines(turn: Mapping[str, Any] | None, thread: Mapping[str, Any] | None) -> Iterator[str]:
    """The stored usage of the last turn and of the thread, and how to configure a missing price."""
    for name, stored in (("this turn", turn), ("this thread", thread)):
        usage = usage_report(stored)
        yield f"{name}: {format_count(usage['requests'], 'request')}, {format_usage(usage)}"
    if usage_report(thread)["cost"] is None:
        yield 'No price configured: add [prices."MODEL"] to config.toml, with input and output per million tokens.'


def format_context_use(use: "ContextUse") -> Iterator[str]:
    """What fills the context window: a line for the whole, one for each part, and one for what is free."""
    window, mark = use.window, "~" if use.is_estimated else ""
    share = f"{100 * use.total / window.tokens:.0f}%"
    yield f"{mark}{use.total:,} of {window.tokens:,} tokens ({share}; window: {_WINDOW_SOURCES[window.source]})"
    parts: tuple[tuple[str, int, Mapping[str, int]], ...] = (
        ("instructions", use.instructions, {}),
        ("tools", sum(use.tools.values()), use.tools),
        ("summary of older messages", use.summary, {}),
        ("your messages", use.messages, {}),
        ("replies", use.replies, {}),
        ("results", sum(use.results.values()), use.results),
        ("free", max(window.tokens - use.total, 0), {}),
    )
    for name, tokens, of_tools in parts:
        if tokens:
            largest = sorted(of_tools.items(), key=lambda item: -item[1])
            named = [f"{tool} {count:,}" for tool, count in largest]
            listed = f"  {format_names(named)}" if named else ""
            yield escape(f"  {name:<25} {tokens:>9,}{listed}")
    yield f"The conversation is compacted before a request of more than {use.compacted_above:,} tokens."


_WINDOW_SOURCES = {
    "set": "set in config.toml",
    "endpoint": "from the endpoint",
    "table": "known for this model",
    "assumed": "assumed",
}


def format_message(role: str, body: Mapping[str, Any], *, full: bool) -> Iterator[str]:
    """One message: role, text, and the calls it requests. Long text is cut unless `full`."""
    call_id = f" {escape(str(body['tool_call_id']))}" if body.get("tool_call_id") else ""
    yield f"{colorize(escape(_ROLES.get(role, role)), 'heading')}{call_id}"
    lines = escape(plain_text(body.get("content")), multiline=True).split("\n")
    kept = lines if full else lines[:_MAX_MESSAGE_LINES]
    yield from (f"  {line}" for line in kept if line or full or len(kept) > 1)
    if len(lines) > len(kept):
        yield f"  {format_omitted(len(lines) - len(kept), 'more line')}"
    for call in body.get("tool_calls") or []:
        arguments = escape(json.dumps(call.get("args"), ensure_ascii=False))
        if not full and len(arguments) > _MAX_ARGUMENT_CHARS:
            arguments = arguments[: _MAX_ARGUMENT_CHARS - 1] + "…"
        yield f"  → {escape(str(call.get('name')))} {escape(str(call.get('id')))} {arguments}"


def format_todo(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line per step of the plan, marked as completed, in progress or pending."""
    return [escape(f"{_TODO_MARKS.get(item.get('status', ''), '[ ]')} {item.get('content', '')}") for item in items]


def format_compaction(event: "Compacted") -> str:
    """One line about a compaction: tokens before and after, and the method."""
    return (
        f"Compacted {event.tokens_before:,} → {event.tokens_after:,} tokens ({_COMPACTION_METHODS[event.method]})"
    )


def format_shell(event: "ShellEnded | ShellContinued") -> str:
    """One line about a background shell: its state and the start of its command."""
    first, *more = event.command.strip().split("\n")
    command = first[:_MAX_COMMAND_CHARS] + ("…" if more or len(first) > _MAX_COMMAND_CHARS else "")
    state = getattr(event, "state", "still running")
    return f"background shell {event.shell_id}: {state}  $ {command}"
