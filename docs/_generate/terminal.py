"""Draw the cells of an emulated terminal screen as SVG."""

import re
from io import StringIO
from itertools import groupby

import pyte
from pyte.screens import Char
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.style import Style
from rich.text import Text

__all__ = ["STILL", "draw", "lines_of"]

# The template names fonts on a server; a picture of ours loads nothing from elsewhere.
STILL = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
"""The template of a picture that shows all lines."""
_DIM = {"brown": "yellow", "default": None}


def lines_of(screen: pyte.Screen) -> list[Text]:
    """The lines of the screen, without empty ones at its end."""
    lines = [_line(screen.buffer[row], screen.columns) for row in range(screen.lines)]
    while lines and not lines[-1].plain.strip():
        lines.pop()
    return lines


def draw(lines: list[Text], columns: int, template: str = STILL) -> str:
    """The lines as an SVG picture."""
    console = Console(record=True, width=columns, file=StringIO(), force_terminal=True, color_system="truecolor")
    for line in lines:
        console.print(line, no_wrap=True, overflow="crop")
    return console.export_svg(title="graph-agent", code_format=template)


def _line(cells: dict[int, Char], columns: int) -> Text:
    line = Text()
    for style, group in groupby((cells[column] for column in range(columns)), key=_style):
        line.append("".join(cell.data for cell in group), style)
    line.rstrip()
    return line


def _style(cell: Char) -> Style:
    colour = _DIM.get(cell.fg, cell.fg if cell.fg.isalpha() else f"#{cell.fg}")
    return Style(color=colour, bold=cell.bold, reverse=cell.reverse)
