"""The lower end of the terminal: lines that stay, and below them live lines of text and calls that are redrawn.

What stays is written once. Of the live lines only those that changed are rewritten, in one write with whatever is
printed above them, so that nothing flickers.
"""

import math
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from graph_agent.cli.render.console import safe_text
from graph_agent.events import LiveCall

__all__ = ["WAITING", "LiveArea", "RunningCalls", "format_partial_arguments", "is_reflowing"]

_REFLOWING = (
    *("TMUX", "VTE_VERSION", "KITTY_WINDOW_ID", "WEZTERM_PANE", "WT_SESSION", "KONSOLE_VERSION"),
    *("ALACRITTY_WINDOW_ID", "ITERM_SESSION_ID", "GHOSTTY_RESOURCES_DIR"),
)
_REFLOWING_PROGRAMS = ("Apple_Terminal", "iTerm.app", "vscode", "WezTerm", "ghostty")
_TO_END, _BELOW = "\x1b[K", "\x1b[J"
WAITING = "the model"
"""The key, among the ids of running calls, of the request that has no answer yet."""
_HIDDEN_S = 1.0
_NARROWEST = 8
_SHOWN = 8
"""How many calls get a line of their own."""
_PAIR = re.compile(r'"((?:[^"\\]|\\.)*)"\s*:\s*(?:"((?:[^"\\]|\\.)*)|([^\s"{\[,}\]][^,}\]]*))')
"""A name with a text, finished or not, or with a number or the like."""
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SHOWN_CHARS = 60
_RAW_CHARS = 4_000
"""How much of the arguments is read with each piece; they may hold a whole file."""


def is_reflowing(environment: Mapping[str, str]) -> bool:
    """Whether the terminal wraps written lines again when it gets narrower."""
    named = environment.get("TERM_PROGRAM") in _REFLOWING_PROGRAMS
    return named or any(environment.get(name) for name in _REFLOWING)


class LiveArea:
    """Lines that are drawn in place on a console; on anything but a real terminal there are none."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._drawn: list[str] = []
        self._cells: list[int] = []
        self._width = 0

    @property
    def is_drawn(self) -> bool:
        """Whether this console draws live lines."""
        return self._console.is_interactive

    def print(self, lines: Sequence[Text], below: Sequence[Text] = ()) -> None:
        """Write lines that stay, and below them live lines."""
        if lines and self.is_drawn and (self._drawn or below):
            top = self._to_top()
            stay = "".join(f"{self.encode(line)}\r\n" for line in lines)
            self._fit(below)
            self._write(f"{top}{_BELOW}{stay}{_joined(self._drawn)}")
            return
        for line in lines:
            self._console.print(line, soft_wrap=True)
        self.draw(below)

    def draw(self, lines: Sequence[Text]) -> None:
        """Draw these live lines: the last of them where the screen has no room for all; none erases them."""
        if not self.is_drawn:
            return
        before, width, top = self._drawn, self._width, self._to_top()
        self._fit(lines)
        if before and width != self._width:
            self._write(f"{top}{_BELOW}{_joined(self._drawn)}")
        elif change := _change(before, self._drawn):
            self._write(change)

    def _fit(self, lines: Sequence[Text]) -> None:
        width, height = self._size()
        shown = [line.copy() for line in lines[-(height - 1) :]]
        for line in shown:
            line.truncate(width - 1, overflow="ellipsis")
        self._drawn, self._width = [self.encode(line) for line in shown], width
        self._cells = [line.cell_len for line in shown]

    def _to_top(self) -> str:
        """The sequence that moves to the first live line, in rows of the present width."""
        width, _ = self._size()
        rows = len(self._drawn)
        if width < self._width and is_reflowing(os.environ):
            rows = sum(max(1, -(-cells // width)) for cells in self._cells)
        return _up(rows - 1)

    def _size(self) -> tuple[int, int]:
        """Columns and rows; COLUMNS may narrow the terminal and not widen it."""
        try:
            columns, rows = os.get_terminal_size(self._console.file.fileno())
        except (OSError, ValueError):
            columns, rows = 0, 0
        width = min(self._console.width, columns or self._console.width)
        return max(width, 2), max(rows or self._console.height, 2)

    def encode(self, line: Text) -> str:
        """The line with its colours, as this console writes it."""
        if not (line.spans or line.style or "\t" in line.plain):
            return line.plain  # A command may write a hundred thousand lines; rich takes 200 times as long.
        with self._console.capture() as captured:
            self._console.print(line, end="", soft_wrap=True)
        return captured.get()

    def _write(self, text: str) -> None:
        self._console.file.write(text)
        self._console.file.flush()


def _change(before: list[str], after: list[str]) -> str:
    """The sequence that turns the drawn lines into the new ones; the last line is always written."""
    if before == after:
        return ""
    same = 0
    while same < min(len(after) - 1, len(before)) and after[same] == before[same]:
        same += 1
    if same == len(before):
        return ("\r\n" if before else "") + _joined(after[same:])
    if after and same == len(before) - 1 and after[same].startswith(before[same]):
        return _joined([after[same].removeprefix(before[same]), *after[same + 1 :]])
    below = _BELOW if len(after) < len(before) else ""
    return f"{_up(len(before) - 1 - same)}{_joined(after[same:])}{below}"


def _joined(lines: Sequence[str]) -> str:
    return "\r\n".join(f"{line}{_TO_END}" for line in lines)


def _up(rows: int) -> str:
    return f"\r\x1b[{rows}A" if rows > 0 else "\r"


@dataclass(slots=True)
class _Running:
    label: str
    last_line: str = ""
    hidden_s: float = 0.0
    """How long it runs before it gets a line."""
    begins_in_s: float = 0.0
    """The delay before it begins; counted down."""
    since: float = field(default_factory=time.monotonic)

    def lines(self, room: int) -> list[Text]:
        """The line of the call, or two where its output has no room beside it."""
        seconds = time.monotonic() - self.since - self.begins_in_s
        elapsed = f"  {seconds:.0f} s" if seconds >= 0 else f"  in {math.ceil(-seconds)} s"
        room = max(_NARROWEST, room)
        label, output = safe_text(self.label), safe_text(self.last_line, "dim")
        label.truncate(max(_NARROWEST, room - 4 - cell_len(elapsed)), overflow="ellipsis")
        line = Text.assemble(("  … ", "yellow"), label, (elapsed, "dim"))
        if not self.last_line:
            return [line]
        if line.cell_len + 2 + output.cell_len <= room:
            return [Text.assemble(line, "  ", output)]
        output.truncate(room - 4, overflow="ellipsis")
        return [line, Text.assemble(("  │ ", "dim"), output)]


class RunningCalls:
    """The live lines of calls that run or are still streaming in: elapsed time and last line of output."""

    def __init__(self) -> None:
        self._calls: dict[str, _Running] = {}
        self._streamed: dict[int, str] = {}
        """Names of the tools whose calls are streaming in, by their index."""

    def begin(self, call_id: str, label: str) -> None:
        """A call has started."""
        self._calls[call_id] = _Running(label)

    def wait(self, key: str, label: str, begins_in_s: float = 0.0) -> None:
        """Something is expected; a line for it appears only if it takes a moment."""
        self._calls[key] = _Running(label, hidden_s=_HIDDEN_S if not begins_in_s else 0, begins_in_s=begins_in_s)

    def stream(self, index: int, call: LiveCall) -> None:
        """A piece of a call has arrived."""
        key = _streamed_key(index)
        if self._streamed.get(index) != call.tool_name:
            self._streamed[index] = call.tool_name
            self.begin(key, f"{call.tool_name} (streaming)")
        self.show_output(key, format_partial_arguments(call.arguments_text[-_RAW_CHARS:]))

    def show_output(self, call_id: str, text: str) -> None:
        """A call has written something."""
        lines = [line for line in text.splitlines() if line.strip()]
        if lines and call_id in self._calls:
            self._calls[call_id].last_line = lines[-1]

    def end(self, call_id: str) -> float | None:
        """A call has ended; returns its seconds, None if its start was not seen."""
        running = self._calls.pop(call_id, None)
        return None if running is None else time.monotonic() - running.since

    def end_streamed(self) -> None:
        """The message is complete, void, or continues with text."""
        for index in self._streamed:
            self.end(_streamed_key(index))
        self._streamed.clear()

    def activity(self) -> str:
        """What runs, in a word or two; empty if nothing does."""
        names = [running.label.split(" ", 1)[0] for key, running in self._calls.items() if key != WAITING]
        return f"{len(names)} calls" if len(names) > 1 else "".join(names)

    def clear(self) -> None:
        """The turn is over: nothing runs any more."""
        self._calls.clear()
        self._streamed.clear()

    def lines(self, width: int) -> list[Text]:
        """The lines of each; several below their count."""
        now = time.monotonic()
        seen = [running for running in self._calls.values() if now - running.since >= running.hidden_s]
        lines = [Text(f"  {len(seen)} running in parallel", "dim")] if len(seen) > 1 else []
        for running in seen[:_SHOWN]:
            lines += running.lines(width - 1)
        if len(seen) > _SHOWN:
            lines.append(Text(f"  … and {len(seen) - _SHOWN} more", "dim"))
        return lines


def _streamed_key(index: int) -> str:
    return f"streamed {index}"


def format_partial_arguments(raw: str) -> str:
    """Names and values in the beginning of a JSON object; of a long value the end, which is new."""
    shown: list[str] = []
    for name, text, other in _PAIR.findall(raw):
        value = _plain(text or other)
        end = value if len(value) <= _SHOWN_CHARS else f"…{value[-_SHOWN_CHARS:]}"
        shown.append(f"{_plain(name)}: {end}")
    return ", ".join(shown)


def _plain(text: str) -> str:
    def unescaped(match: re.Match[str]) -> str:
        escape = match[1]
        if len(escape) > 1:
            return chr(int(escape[1:], 16)).encode("utf-8", "replace").decode()
        return " " if escape in "nrtbf" else escape

    return " ".join(_ESCAPE.sub(unescaped, text).split())
