"""The rich console everything is printed on, and foreign text as escaped and folded lines that hide nothing."""

import shutil
import sys
from typing import TextIO

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.text import Text

from graph_agent.cli.render.escape import escape, is_plain_terminal, parts, supports_escapes

__all__ = ["block", "expand_tabs", "fold", "make_console", "safe_text"]


def make_console(stream: TextIO | None = None) -> Console:
    """A console that prints text literally; colours follow NO_COLOR and TERM, the width COLUMNS."""
    console = Console(
        file=stream or sys.stdout,
        force_interactive=False if is_plain_terminal() else None,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=False,
    )
    if not supports_escapes() and console.is_terminal:
        # Rich takes every dumb terminal for 80 columns wide.
        console.size = shutil.get_terminal_size()
    return console


_ESCAPED = "reverse"
_NARROWEST = 8


def safe_text(text: str, style: str = "") -> Text:
    """One line of foreign text; escapes are shown reversed, so that a literal backslash looks different."""
    if escape(text) == text:
        return Text(text, style)
    shown = Text(style=style)
    for part, is_escaped in parts(text):
        shown.append(part, _ESCAPED if is_escaped else None)
    return shown


def fold(line: Text, width: int, gutter: str = "", rest: str | None = None) -> list[Text]:
    """The line folded by cells, not by words, behind the gutter; further pieces come behind `rest`."""
    following = gutter if rest is None else rest
    room = max(_NARROWEST, width - max(cell_len(gutter), cell_len(following)))
    offsets, position = [], 0
    for piece in chop_cells(line.plain, room)[:-1]:
        position += len(piece)
        offsets.append(position)
    pieces = line.divide(offsets)
    return [Text.assemble((following if number else gutter, "dim"), piece) for number, piece in enumerate(pieces)]


def block(text: str, width: int, gutter: str = "  │ ", style: str = "") -> list[Text]:
    """Text of several lines behind a gutter; a newline at the end is optional."""
    lines = text.split("\n")
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    return [piece for line in lines for piece in fold(safe_text(line, style), width, gutter)]


def expand_tabs(line: str) -> str:
    """Tabs as visible arrows with blanks: code stays readable and a tab differs from blanks."""
    return line.replace("\t", "→   ")
