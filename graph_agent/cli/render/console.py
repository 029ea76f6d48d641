"""The rich console everything is printed on; foreign text and diffs as escaped, folded lines that hide nothing."""

import shutil
import sys
from collections.abc import Sequence
from typing import TextIO

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.text import Span, Text

from graph_agent.cli.views.table import WORD, is_plain_terminal, supports_escapes
from graph_agent.ports.stored_text import Hunk, parse_diff
from graph_agent.wording import escape, parts

__all__ = ["block", "diff_lines", "fold", "hunk_lines", "make_console", "safe_text"]

_ESCAPED = "reverse"
_NARROWEST = 8
_GUTTER = " " * 7
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


def fold(
    line: Text, width: int, gutter: str = "", indent: str | None = None, *, by_words: bool = False
) -> list[Text]:
    """The line folded by cells behind the gutter; further pieces come behind `indent`.

    Args:
        by_words: fold between words where there are blanks, and a longer path after a slash. What would run is
            folded by cells alone.
    """
    following = gutter if indent is None else indent
    room = max(_NARROWEST, width - max(cell_len(gutter), cell_len(following)))
    if cell_len(line.plain) <= room:
        if by_words or not gutter:
            line = line.copy()  # It is the caller's.
        if by_words:
            line.rstrip()
        return [_behind(gutter, line)]
    offsets, position, remainder = [], 0, line.plain
    # Of characters that take no cells, such as lone accents, rich returns no piece: they stay together.
    while len(piece := next(filter(None, chop_cells(remainder, room)), remainder)) < len(remainder):
        size = len(piece)
        if by_words:
            ends = ((word.start(), word.start() + len(word[0].rstrip(" "))) for word in WORD.finditer(remainder))
            start = next((start for start, end in ends if end > size), len(remainder))
            size = start or piece.rfind("/") + 1 or size
        position, remainder = position + size, remainder[size:]
        offsets.append(position)
    pieces = line.divide(offsets)
    if by_words:
        for one in pieces:
            one.rstrip()
    return [_behind(following if number else gutter, one) for number, one in enumerate(pieces)]


def _behind(gutter: str, line: Text) -> Text:
    """The line behind a dim gutter; `Text.assemble` takes twice as long, and a diff may have thousands of lines."""
    if not gutter:
        return line
    at = len(gutter)
    style = [Span(at, at + len(line), line.style)] if line.style else []
    moved = [Span(at + span.start, at + span.end, span.style) for span in line.spans]
    return Text(gutter + line.plain, spans=[Span(0, at, "dim"), *style, *moved])


def block(text: str, width: int, gutter: str = "  │ ", style: str = "", *, by_words: bool = False) -> list[Text]:
    """Text of several lines behind a gutter, folded as `fold` does it; a newline at the end is optional."""
    lines = text.removesuffix("\n").split("\n")
    return [piece for line in lines for piece in fold(safe_text(line, style), width, gutter, by_words=by_words)]


def diff_lines(diff: str, width: int) -> list[Text]:
    """A unified diff as folded lines: old or new number, sign, text; its headers are dimmed."""
    head, hunks = parse_diff(diff)
    shown = [piece for line in head for piece in fold(safe_text(line, "dim"), width, _GUTTER)]
    return [*shown, *hunk_lines(hunks, width)]


def hunk_lines(hunks: Sequence[Hunk], width: int) -> list[Text]:
    """Hunks as folded lines: old or new number, sign, text; a mark stands for the lines between two of them."""
    shown: list[Text] = []
    for number, hunk in enumerate(hunks):
        old, new = hunk.old, hunk.new
        if number:
            shown.append(Text(f"{_GUTTER}⋮", "dim"))
        for line in hunk.lines:
            sign, gutter = line[:1], _GUTTER
            if sign in _STYLES:
                gutter = f"{old if sign == '-' else new:>6} "
                text = safe_text(sign + line[1:].replace("\t", _TAB), _STYLES[sign])
                old += sign != "+"
                new += sign != "-"
            else:
                text = safe_text(line, "dim")
            shown += fold(text, width, gutter, _GUTTER)
    return shown
