"""What a person sees: a terminal emulator that reads what a program wrote, with all that has scrolled away."""

import re

import pyte
from pyte import modes

__all__ = ["Screen"]

_SCROLLED = 20_000
_PRIVATE = re.compile(r"\x1b\[[<=>][0-9;]*[a-zA-Z]")
"""Keyboard protocols, of which the emulator knows nothing: it would print or misread them."""
_UNFINISHED = re.compile(r"\x1b(?:\[(?:[<=>][0-9;]*)?)?$")


class Screen:
    """A terminal of this size. It does not fold written lines anew when its width changes."""

    def __init__(self, columns: int, rows: int) -> None:
        self._screen = pyte.HistoryScreen(columns, rows, history=_SCROLLED)
        # A pseudo-terminal makes both of a line feed; what comes from a string has to be read that way.
        self._screen.set_mode(modes.LNM)
        self._stream = pyte.Stream(self._screen)
        self._rest = ""

    def feed(self, text: str) -> None:
        text = _PRIVATE.sub("", self._rest + text)
        unfinished = _UNFINISHED.search(text)
        self._rest = unfinished[0] if unfinished else ""
        self._stream.feed(text.removesuffix(self._rest))

    def resize(self, columns: int, rows: int) -> None:
        """As terminals do it: what has no room above the cursor scrolls away, and nothing of it is lost."""
        screen, row = self._screen, self._screen.cursor.y
        for _ in range(row - (rows - 1)):
            screen.cursor.y = screen.lines - 1
            screen.index()
        for gone in range(rows, screen.lines):
            screen.buffer.pop(gone, None)
        screen.cursor.y, screen.lines = min(row, rows - 1), rows
        screen.resize(rows, columns)

    @property
    def scrolled(self) -> list[str]:
        """The lines above the screen."""
        rows = self._screen.history.top
        return ["".join(row[x].data for x in range(max(row, default=-1) + 1)).rstrip() for row in rows]

    @property
    def lines(self) -> list[str]:
        """Every line from the first on, without the blanks at its end and without the empty rows below the last."""
        lines = [*self.scrolled, *(line.rstrip() for line in self._screen.display)]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    @property
    def cursor(self) -> tuple[int, int]:
        """Column and row on the screen, from 0 on."""
        return self._screen.cursor.x, self._screen.cursor.y
