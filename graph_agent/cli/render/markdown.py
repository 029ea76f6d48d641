"""Markdown that arrives in pieces, as lines for the terminal: each is finished once and never changes afterwards.

Works line by line, as terminals do: whatever was finished may be printed into the scrollback at once, and only the
line that is still arriving, or a table whose columns may still grow, is to be drawn anew. Draws nothing itself.
"""

import re
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from graph_agent.cli.escape import escape
from graph_agent.cli.render.code import Code
from graph_agent.cli.render.inline import inline
from graph_agent.cli.render.lines import folded
from graph_agent.cli.render.tables import is_delimiter, may_be_row, table_lines

__all__ = ["Markdown"]

_FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})\s*([\w+#.-]*)[^`]*$")
_HEADING = re.compile(r"^ {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*$")
_RULE = re.compile(r"^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")
_QUOTE = re.compile(r"^( {0,3})>[ ]?(.*)$")
_ITEM = re.compile(r"^(\s*)([-*+]|\d{1,9}[.)])(\s+)(.*)$")
_HEADINGS = ("bold underline", "bold", "bold italic")
_CODE_INDENT = "  "
_LITERAL_INDENT = 4
_NARROWEST = 8
_RULE_CELLS = 40
_SEEN_CHARS = 4_000
"""How much of an unfinished line is looked at with each drawing; more hardly fits a screen."""


@dataclass(frozen=True, slots=True)
class _Fence:
    indent: int
    marks: str
    code: Code


class Markdown:
    """One text. What `add` and `end` return is finished; `tail` shows what is not, as it stands."""

    def __init__(self, console: Console, style: str = "") -> None:
        self._console = console
        self._style = style
        self._rest: list[str] = []
        """The pieces of the line that is arriving: joined once, however many they are."""
        self._fence: _Fence | None = None
        self._table: list[str] = []
        """Lines that are a table, or the one that may be its heads."""
        self._is_list = False

    def add(self, text: str) -> list[Text]:
        """Take in a piece; returns the lines that are finished by it."""
        self._rest.append(text)
        if "\n" not in text:
            return []
        *lines, rest = "".join(self._rest).replace("\r\n", "\n").split("\n")
        self._rest = [rest]
        return [shown for line in lines for shown in self._take(_safe(line))]

    def tail(self) -> list[Text]:
        """What has arrived and is not finished."""
        self._rest = ["".join(self._rest)]
        line = _safe(self._rest[0][-_SEEN_CHARS:])
        looks = self._look(line) if line else []
        if len(self._table) > 1 or (self._table and is_delimiter(line)):
            is_row = may_be_row(line)
            table = self._drawn_table([*self._seen_rows(), *([line] if is_row else [])])
            return self._styled([*table, *([] if is_row else looks)])
        waiting = [shown for held in self._table for shown in self._plain(held)]
        return self._styled([*waiting, *looks])

    def end(self) -> list[Text]:
        """No more comes: the rest of the lines."""
        rest, self._rest = "".join(self._rest), []
        return [*(self._take(_safe(rest)) if rest else []), *self._styled(self._close_table())]

    def _take(self, line: str) -> list[Text]:
        if self._fence is None and may_be_row(line):
            if len(self._table) != 1 or is_delimiter(line):
                self._table.append(line)
                return []
            held, self._table = self._table[0], [line]
            return self._styled(self._block(held))
        return self._styled([*self._close_table(), *self._block(line)])

    def _close_table(self) -> list[Text]:
        rows, self._table = self._table, []
        if len(rows) > 1:
            self._is_list = False
            return self._drawn_table(rows)
        return [shown for row in rows for shown in self._block(row)]

    def _seen_rows(self) -> list[str]:
        """The rows that have room on the screen: to draw all of a long table with each piece would take seconds."""
        heads, rows = self._table[:2], self._table[2:]
        return [*heads, *rows[-self._console.height :]]

    def _drawn_table(self, rows: list[str]) -> list[Text]:
        return table_lines(rows, self._console, self._console.width)

    def _block(self, line: str) -> list[Text]:
        """A finished line outside of tables."""
        if self._fence is not None:
            if self._closes(line, self._fence):
                self._fence = None
                return []
            return self._code(self._fence, self._fence.code.line(_outdented(line, self._fence.indent)))
        if found := _FENCE.match(line):
            indent, marks, language = found.groups()
            self._fence = _Fence(len(indent), marks, Code(language))
            return [Text(f"{indent}{_CODE_INDENT}{language}", "dim")] if language else []
        shown = self._plain(line)
        if _ITEM.match(line):
            self._is_list = True
        elif line[:1].strip():
            self._is_list = False
        return shown

    def _look(self, line: str) -> list[Text]:
        """The line as it looks until now; changes nothing."""
        if self._fence is None:
            return [] if _FENCE.match(line) else self._plain(line)
        if self._closes(line, self._fence):
            return []
        return self._code(self._fence, self._fence.code.look(_outdented(line, self._fence.indent)))

    def _closes(self, line: str, fence: _Fence) -> bool:
        marks = line.strip()
        return marks.startswith(fence.marks) and not marks.strip(fence.marks[0])

    def _code(self, fence: _Fence, line: Text) -> list[Text]:
        return folded(line, self._console.width, " " * fence.indent + _CODE_INDENT)

    def _plain(self, line: str) -> list[Text]:
        if found := _HEADING.match(line):
            level = len(found[1])
            return self._wrapped(inline(found[2] or "", _HEADINGS[min(level, len(_HEADINGS)) - 1]))
        if _RULE.match(line):
            return [Text("─" * min(_RULE_CELLS, self._console.width), "dim")]
        if found := _QUOTE.match(line):
            return self._wrapped(inline(found[2], "italic"), f"{found[1]}│ ", f"{found[1]}│ ")
        if found := _ITEM.match(line):
            indent, mark, room, text = found.groups()
            sign = "•" if mark in "-*+" else mark
            lead = f"{indent}{sign}{room}"
            return self._wrapped(inline(text), lead, " " * cell_len(lead))
        text = line.lstrip(" ")
        indent = line[: len(line) - len(text)]
        if len(indent) >= _LITERAL_INDENT and not self._is_list:
            return folded(Text(text), self._console.width, indent)
        return self._wrapped(inline(text), indent, indent)

    def _wrapped(self, text: Text, lead: str = "", rest: str = "") -> list[Text]:
        """By words, with further lines below the first word."""
        room = self._console.width - cell_len(lead)
        if room < _NARROWEST:
            return folded(text, self._console.width, lead, "")
        pieces = text.wrap(self._console, room, overflow="fold") or [Text("")]
        for piece in pieces:
            piece.rstrip()
        return [Text.assemble((rest if number else lead, "dim"), piece) for number, piece in enumerate(pieces)]

    def _styled(self, lines: list[Text]) -> list[Text]:
        if self._style:
            for line in lines:
                line.stylize_before(self._style)
        return lines


def _safe(line: str) -> str:
    return escape(line, multiline=True).expandtabs(4)


def _outdented(line: str, cells: int) -> str:
    blanks = len(line) - len(line.lstrip(" "))
    return line[min(cells, blanks) :]
