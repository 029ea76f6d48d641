"""Markdown that arrives in pieces, as lines for the terminal: each is finished once and never changes afterwards.

Works line by line, as terminals do: whatever was finished may be printed into the scrollback at once, and only what
may still change is to be drawn anew: the line that is arriving, one that an underline may make a heading, a table.
Draws nothing itself.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

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
_UNDERLINE = re.compile(r"^ {0,3}(={2,}|-{3,})[ \t]*$")
"""Shorter ones are more often meant as they stand than as the underline of a heading."""
_CODE_INDENT = "  "
_LITERAL_INDENT = 4
_NARROWEST = 8
_RULE_CELLS = 40
_SEEN_CHARS = 4_000
"""How much of an unfinished line is looked at with each drawing; more hardly fits a screen."""


class _Lead(NamedTuple):
    """What a line begins with: quotes it stands in, the item it is."""

    first: str
    """As it is shown."""
    rest: str
    """What stands before its further lines."""
    quotes: int
    item: int
    """How wide the mark of the item is; 0 for none."""
    inner: str
    """What comes behind."""


@dataclass(frozen=True, slots=True)
class _Fence:
    quotes: int
    indent: int
    lead: str
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
        self._held: str | None = None
        """A line that the next one may make a heading."""

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
        if self._held is not None and _UNDERLINE.match(line):
            return self._styled(self._heading(self._held, line))
        held = [*([] if self._held is None else [self._held]), *self._table]
        return self._styled([*(shown for one in held for shown in self._plain(one)), *looks])

    def end(self) -> list[Text]:
        """No more comes: the rest of the lines."""
        rest, self._rest = "".join(self._rest), []
        shown = self._take(_safe(rest)) if rest else []
        return [*shown, *self._styled([*self._release(), *self._close_table()])]

    def _take(self, line: str) -> list[Text]:
        if self._fence is not None and _unquoted(line, self._fence.quotes) is None:
            self._fence = None
        if self._fence is not None:
            return self._styled(self._block(line))
        if self._held is not None and _UNDERLINE.match(line):
            held, self._held = self._held, None
            return self._styled(self._heading(held, line))
        before = self._styled(self._release())
        if may_be_row(line):
            if len(self._table) != 1 or is_delimiter(line):
                self._table.append(line)
                return before
            row, self._table = self._table[0], [line]
            return [*before, *self._styled(self._block(row))]
        before += self._styled(self._close_table())
        if self._may_be_heading(line):
            self._held = line
            return before
        return [*before, *self._styled(self._block(line))]

    def _may_be_heading(self, line: str) -> bool:
        text = line.lstrip(" ")
        is_literal = len(line) - len(text) >= _LITERAL_INDENT
        is_marked = any(kind.match(line) for kind in (_HEADING, _RULE, _QUOTE, _ITEM, _FENCE))
        return bool(text) and not (self._is_list or is_literal or is_marked)

    def _heading(self, line: str, underline: str) -> list[Text]:
        return self._wrapped(inline(line.strip(), _HEADINGS[0 if "=" in underline else 1]))

    def _release(self) -> list[Text]:
        """The line that was held, which is no heading."""
        held, self._held = self._held, None
        return [] if held is None else self._block(held)

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
            line = _unquoted(line, self._fence.quotes) or ""
            if _closes(line, self._fence):
                self._fence = None
                return []
            return self._code(self._fence, self._fence.code.line(_outdented(line, self._fence.indent)))
        lead = _lead_of(line)
        if found := _FENCE.match(lead.inner):
            indent, marks, language = found.groups()
            self._is_list = self._is_list or lead.item > 0
            self._fence = _Fence(
                lead.quotes, lead.item + len(indent), f"{lead.rest}{indent}{_CODE_INDENT}", marks, Code(language)
            )
            says = Text(f"{lead.first}{indent}{_CODE_INDENT}{language}", "dim")
            return folded(says, self._console.width) if language or lead.item else []
        shown = self._plain(line)
        if lead.item:
            self._is_list = True
        elif line[:1].strip():
            self._is_list = False
        return shown

    def _look(self, line: str) -> list[Text]:
        """The line as it looks until now; changes nothing."""
        inner = None if self._fence is None else _unquoted(line, self._fence.quotes)
        if self._fence is None or inner is None:
            return [] if _FENCE.match(_lead_of(line).inner) else self._plain(line)
        if _closes(inner, self._fence):
            return []
        return self._code(self._fence, self._fence.code.look(_outdented(inner, self._fence.indent)))

    def _code(self, fence: _Fence, line: Text) -> list[Text]:
        return folded(line, self._console.width, self._fitting(fence.lead))

    def _plain(self, line: str) -> list[Text]:
        lead = _lead_of(line)
        style = "italic" if lead.quotes else ""
        if lead.item:
            return self._wrapped(inline(lead.inner, style), lead.first, lead.rest)
        if found := _HEADING.match(lead.inner):
            level = len(found[1])
            text = inline(found[2] or "", _HEADINGS[min(level, len(_HEADINGS)) - 1])
            return self._wrapped(text, lead.first, lead.rest)
        if _RULE.match(lead.inner):
            rule = "─" * max(min(_RULE_CELLS, self._console.width) - cell_len(lead.first), 1)
            return self._wrapped(Text(rule, "dim"), lead.first, lead.rest)
        if lead.quotes:
            return self._wrapped(inline(lead.inner, style), lead.first, lead.rest)
        words = line.lstrip(" ")
        indent = line[: len(line) - len(words)]
        if len(indent) >= _LITERAL_INDENT and not self._is_list:
            return folded(Text(words), self._console.width, self._fitting(indent))
        return self._wrapped(inline(words), indent, indent)

    def _wrapped(self, text: Text, lead: str = "", rest: str = "") -> list[Text]:
        """By words, with further lines below the first word."""
        room = self._console.width - cell_len(lead)
        if room < _NARROWEST:
            return folded(text, self._console.width, self._fitting(lead), "")
        pieces = text.wrap(self._console, room, overflow="fold") or [Text("")]
        for piece in pieces:
            piece.rstrip()
        return [Text.assemble((rest if number else lead, "dim"), piece) for number, piece in enumerate(pieces)]

    def _fitting(self, lead: str) -> str:
        """What stands before a line, or as much of it as leaves room for the line."""
        for shorter in (lead, lead.strip(" ")):
            if self._console.width - cell_len(shorter) >= _NARROWEST:
                return shorter
        return ""

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


def _lead_of(line: str) -> _Lead:
    """Quotes may stand in quotes, and an item in each; a rule is no item."""
    first = rest = ""
    quotes = 0
    while found := _QUOTE.match(line):
        first, line, quotes = f"{first}{found[1]}│ ", found[2], quotes + 1
    rest = first
    if _RULE.match(line) or not (found := _ITEM.match(line)):
        return _Lead(first, rest, quotes, 0, line)
    indent, mark, room, text = found.groups()
    lead = f"{indent}{'•' if mark in '-*+' else mark}{room}"
    return _Lead(f"{first}{lead}", f"{rest}{' ' * cell_len(lead)}", quotes, len(indent + mark + room), text)


def _unquoted(line: str, quotes: int) -> str | None:
    """The line without so many marks of quotes; None where it has fewer, and stands in them no more."""
    for _ in range(quotes):
        if not (found := _QUOTE.match(line)):
            return None
        line = found[2]
    return line


def _closes(line: str, fence: _Fence) -> bool:
    marks = line.strip()
    return marks.startswith(fence.marks) and not marks.strip(fence.marks[0])
