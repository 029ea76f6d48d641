"""Tables of a Markdown text, drawn within a width. Cells are folded and never cut; knows no other Markdown."""

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Literal

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from graph_agent.cli.render.inline import inline
from graph_agent.cli.render.lines import folded

__all__ = ["is_delimiter", "may_be_row", "table_lines"]

_DELIMITER = re.compile(r"^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")
_BETWEEN = re.compile(r"(?<!\\)\|")
_CELL_AND_ROOM = 5
"""Cells of the screen a column takes at least, with what separates it from the next."""


def may_be_row(line: str) -> bool:
    """Whether the line may belong to a table."""
    return "|" in line


def is_delimiter(line: str) -> bool:
    """Whether the line is the one below a table's heads."""
    return "|" in line and _DELIMITER.match(line) is not None


def table_lines(rows: Sequence[str], console: Console, width: int) -> list[Text]:
    """The table: its heads, its delimiter and its rows; as it was written where the columns do not fit."""
    heads, aligned, *body = (_cells(row) for row in rows)
    columns = max(len(heads), *(len(row) for row in body)) if body else len(heads)
    if columns * _CELL_AND_ROOM > width:
        return [piece for row in rows for piece in folded(Text(row), width)]
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for _, head, mark in zip_longest(range(columns), heads[:columns], aligned[:columns], fillvalue=""):
        table.add_column(inline(str(head)), justify=_justify(str(mark)), overflow="fold")
    for row in body:
        table.add_row(*map(inline, row))
    lines = console.render_lines(table, console.options.update(width=width), pad=False)
    drawn = [Text.assemble(*((piece.text, piece.style or "") for piece in line)) for line in lines]
    for line in drawn:
        line.rstrip()
    return drawn


def _cells(row: str) -> list[str]:
    inner = row.strip().removeprefix("|")
    inner = inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner
    return [cell.strip() for cell in _BETWEEN.split(inner)]


def _justify(mark: str) -> Literal["left", "center", "right"]:
    if mark.endswith(":"):
        return "center" if mark.startswith(":") else "right"
    return "left"
