"""The lower end of a terminal's output: lines that stay, and below them a few that are drawn anew in place.

What stays is written once and never touched again. Of the lines in place only those that changed are rewritten, in
one write with whatever is printed above them: nothing flickers. Knows nothing of what the lines say.
"""

import os
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.text import Text

__all__ = ["Area", "reflows"]

_REFLOWING = (
    *("TMUX", "VTE_VERSION", "KITTY_WINDOW_ID", "WEZTERM_PANE", "WT_SESSION", "KONSOLE_VERSION"),
    *("ALACRITTY_WINDOW_ID", "ITERM_SESSION_ID", "GHOSTTY_RESOURCES_DIR"),
)
_REFLOWING_PROGRAMS = ("Apple_Terminal", "iTerm.app", "vscode", "WezTerm", "ghostty")
_TO_END, _BELOW = "\x1b[K", "\x1b[J"


def reflows(environment: Mapping[str, str]) -> bool:
    """Whether the terminal is one of those that fold written lines anew when they get narrower."""
    named = environment.get("TERM_PROGRAM") in _REFLOWING_PROGRAMS
    return named or any(environment.get(name) for name in _REFLOWING)


class Area:
    """Lines that are drawn in place on one console; on anything but a real terminal there are none."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._drawn: list[str] = []
        self._cells: list[int] = []
        self._width = 0

    @property
    def is_drawn(self) -> bool:
        """Whether lines in place are seen on this console."""
        return self._console.is_interactive

    def print(self, lines: Sequence[Text], below: Sequence[Text] = ()) -> None:
        """Write lines that stay, and below them these in place."""
        if not lines or not (self._drawn or below) or not self.is_drawn:
            for line in lines:
                self._console.print(line, soft_wrap=True)
            self.draw(below)
            return
        top = self._to_top()
        stay = "".join(f"{self._encoded(line)}\r\n" for line in lines)
        self._fit(below)
        self._write(f"{top}{_BELOW}{stay}{_joined(self._drawn)}")

    def draw(self, lines: Sequence[Text]) -> None:
        """Let these be the lines in place: the last of them where the screen has not room for all."""
        if not self.is_drawn:
            return
        before, width, top = self._drawn, self._width, self._to_top()
        self._fit(lines)
        if before and width != self._width:
            self._write(f"{top}{_BELOW}{_joined(self._drawn)}")
        elif change := _change(before, self._drawn):
            self._write(change)

    def clear(self) -> None:
        """Take the lines in place off the screen: somebody else may write now."""
        self.draw(())

    def _fit(self, lines: Sequence[Text]) -> None:
        width, height = self._size()
        shown = [line.copy() for line in lines[-(height - 1) :]]
        for line in shown:
            line.truncate(width - 1, overflow="ellipsis")
        self._drawn, self._width = [self._encoded(line) for line in shown], width
        self._cells = [line.cell_len for line in shown]

    def _to_top(self) -> str:
        """To the first line in place, counted with the width that the terminal has now."""
        width, _ = self._size()
        rows = len(self._drawn)
        if width < self._width and reflows(os.environ):
            rows = sum(max(1, -(-cells // width)) for cells in self._cells)
        return _up(rows - 1)

    def _size(self) -> tuple[int, int]:
        """COLUMNS may say less than there is; what it says beyond that would not fit on one row."""
        try:
            columns, rows = os.get_terminal_size(self._console.file.fileno())
        except (OSError, ValueError):
            columns, rows = 0, 0
        width = min(self._console.width, columns or self._console.width)
        return max(width, 2), max(rows or self._console.height, 2)

    def _encoded(self, line: Text) -> str:
        with self._console.capture() as captured:
            self._console.print(line, end="", soft_wrap=True)
        return captured.get()

    def _write(self, text: str) -> None:
        self._console.file.write(text)
        self._console.file.flush()


def _change(before: list[str], after: list[str]) -> str:
    """What makes the one of the other, from the end of its last line on; the last line is always written."""
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
