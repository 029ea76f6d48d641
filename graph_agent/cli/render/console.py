"""The rich console everything is printed on; foreign text and diffs as escaped, folded lines that hide nothing."""

import re
import shutil
import sys
from typing import TextIO

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.text import Text

from graph_agent.cli.render.escape import escape, is_plain_terminal, parts, supports_escapes

__all__ = ["added_text", "block", "diff_lines", "fold", "make_console", "safe_text"]

_ESCAPED = "reverse"
_NARROWEST = 8
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_STYLES = {"+": "green", "-": "red", " ": ""}
_TAB = "→   "
"""How a diff shows a tab: code stays readable and a tab differs from blanks."""


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


def safe_text(text: str, style: str = "") -> Text:
    """One line of foreign text; escapes are shown reversed, so that a literal backslash looks different."""
    if escape(text) == text:
        return Text(text, style)
    shown = Text(style=style)
    for part, is_escaped in parts(text):
        shown.append(part, _ESCAPED if is_escaped else None)
    return shown


def fold(line: Text, width: int, gutter: str = "", indent: str | None = None) -> list[Text]:
    """The line folded by cells, not by words, behind the gutter; further pieces come behind `indent`."""
    following = gutter if indent is None else indent
    room = max(_NARROWEST, width - max(cell_len(gutter), cell_len(following)))
    offsets, position = [], 0
    for piece in chop_cells(line.plain, room)[:-1]:
        position += len(piece)
        offsets.append(position)
    pieces = line.divide(offsets)
    return [Text.assemble((following if number else gutter, "dim"), piece) for number, piece in enumerate(pieces)]


def block(text: str, width: int, gutter: str = "  │ ", style: str = "") -> list[Text]:
    """Text of several lines behind a gutter; a newline at the end is optional."""
    lines = text.removesuffix("\n").split("\n")
    return [piece for line in lines for piece in fold(safe_text(line, style), width, gutter)]


def diff_lines(diff: str, width: int) -> list[Text]:
    """A unified diff as folded lines: old or new number, sign, text; file headers are dimmed."""
    shown: list[Text] = []
    old, new = 0, 0
    in_hunk = False
    for line in diff.removesuffix("\n").split("\n") if diff else ():
        sign, gutter = line[:1], " " * 7
        if found := _HUNK.match(line):
            old, new, in_hunk = int(found[1]), int(found[2]), True
            text = safe_text(line, "cyan")
        elif in_hunk and sign in _STYLES:
            gutter = f"{old if sign == '-' else new:>6} "
            text = safe_text(sign + line[1:].replace("\t", _TAB), _STYLES[sign])
            old += sign != "+"
            new += sign != "-"
        else:
            text = safe_text(line, "dim")
        shown += fold(text, width, gutter)
    return shown


def added_text(diff: str) -> str | None:
    """The whole new content, if the diff shows all of it: only added lines, one hunk from line 1."""
    lines = diff.removesuffix("\n").split("\n")
    start = next((number for number, line in enumerate(lines) if _HUNK.match(line)), None)
    if start is None or not lines[start].split("+", 1)[1].startswith(("1 ", "1,")):
        return None
    body = lines[start + 1 :]
    if not all(line.startswith(("+", "\\")) for line in body):
        return None
    return "\n".join(line[1:] for line in body if line.startswith("+"))
