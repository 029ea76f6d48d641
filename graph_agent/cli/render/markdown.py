"""Markdown that arrives in pieces, as lines for the terminal: each is finished once and never changes afterwards.

Works line by line, as terminals do: whatever was finished may be printed into the scrollback at once, and only what
may still change is to be drawn anew: the line that is arriving, one that an underline may make a heading, a table.
Draws nothing itself.

Marks within one line of Markdown: code, bold, links. Whatever is no mark stays as it was written.

Nothing disappears but the marks themselves: HTML, escapes of other signs and names such as `__init__` are text.

Tables of a Markdown text, drawn within a width. Cells are folded and never cut; knows no other Markdown.

Code that arrives line by line, in colours where its language is known. Knows nothing of the text around it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from graph_agent.cli.render.console import fold
from graph_agent.cli.render.escape import escape

__all__ = ["Code", "Markdown", "inline", "is_delimiter", "may_be_row", "table_lines"]

_THEME = Syntax.get_theme("ansi_dark")
_CONTEXT_LINES = 8
"""How many earlier lines are looked at again for a line's colours: what a word means may depend on them."""
_GO_ON = ("Token.Literal.String", "Token.Comment.Multiline")
"""What may begin on one line and end on a later one."""


class Code:
    """One piece of code; each line comes back with its colours, which later lines never change."""

    def __init__(self, language: str) -> None:
        self._lexer = Syntax("", language).lexer if language else None
        self._before: list[str] = []
        self._is_open = False
        """Whether a string or a comment goes on over the end of the last line."""

    def line(self, line: str) -> Text:
        """The next line, finished."""
        shown, is_open = self._seen(line)
        if self._is_open and not is_open:
            # Without its beginning, the end of a string would look like the beginning of one.
            self._before.clear()
        elif not is_open:
            self._before = [*self._before, line][-_CONTEXT_LINES:]
        elif not self._is_open:
            self._before.append(line)
        self._is_open = is_open
        return shown

    def look(self, line: str) -> Text:
        """The next line as it looks until now."""
        return self._seen(line)[0]

    def _seen(self, line: str) -> tuple[Text, bool]:
        if self._lexer is None:
            return Text(line), False
        shown, number, last = Text(), 0, ""
        for kind, text in self._lexer.get_tokens("\n".join((*self._before, line))):
            pieces = text.split("\n")
            for place, piece in enumerate(pieces):
                if number == len(self._before) and piece:
                    shown.append(piece, _THEME.get_style_for_token(kind))
                number += place < len(pieces) - 1
            last = str(kind)
        # A lexer that changes the text, such as one that drops a character, is not to be trusted with it.
        return shown if shown.plain == line else Text(line), last.startswith(_GO_ON)


_STYLES = {"strong": "bold", "em": "italic", "s": "strike"}
_CODE = "cyan"
_UNESCAPED = "*`~|#"
"""Signs that are marks here; a backslash before another one is a part of the text, of a path or a formula."""


def _parser() -> MarkdownIt:
    # An entity could stand for a control character, and a reference be defined in a line that is gone.
    made = MarkdownIt("commonmark", {"html": False}).enable("strikethrough")
    made.disable(["entity", "html_inline", "text_join"])
    made.normalizeLink = lambda url: url  # type: ignore[method-assign]  # a link is shown as it was written
    return made


_PARSER = _parser()


def inline(line: str, style: str = "") -> Text:
    """The line, made safe before, with its marks turned into styles."""
    shown = Text(style=style)
    open_styles: list[str] = []
    links: list[tuple[str, int]] = []
    for token in _PARSER.parseInline(line)[0].children or []:
        kind, _, end = token.type.rpartition("_")
        if kind == "link":
            _link(shown, token, links)
        elif kind in _STYLES and not token.markup.startswith("_"):
            if end == "open":
                open_styles.append(_STYLES[kind])
            else:
                open_styles.remove(_STYLES[kind])
        else:
            shown.append(*_piece(token, open_styles))
    return shown


def _piece(token: Token, styles: Sequence[str]) -> tuple[str, str]:
    match token.type:
        case "code_inline":
            return token.content, " ".join((*styles, _CODE))
        case "text_special":
            text = token.content if token.content in _UNESCAPED else token.markup
        case "image":
            text = f"{token.content} ({token.attrs.get('src', '')})"
        case "em_open" | "em_close" | "strong_open" | "strong_close":
            text = token.markup
        case _:
            text = token.content
    return text, " ".join(styles)


def _link(shown: Text, token: Token, links: list[tuple[str, int]]) -> None:
    """What is linked, and where to: a terminal's own links would hide that."""
    if token.type == "link_open":
        links.append((str(token.attrs.get("href", "")), len(shown)))
        return
    url, start = links.pop()
    shown.stylize("underline", start)
    if shown.plain[start:] != url and not url.endswith(f":{shown.plain[start:]}"):
        shown.append(f" ({url})", "dim")


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
        return [piece for row in rows for piece in fold(Text(row), width)]
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
            return fold(says, self._console.width) if language or lead.item else []
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
        return fold(line, self._console.width, self._fitting(fence.lead))

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
            return fold(Text(words), self._console.width, self._fitting(indent))
        return self._wrapped(inline(words), indent, indent)

    def _wrapped(self, text: Text, lead: str = "", rest: str = "") -> list[Text]:
        """By words, with further lines below the first word."""
        room = self._console.width - cell_len(lead)
        if room < _NARROWEST:
            return fold(text, self._console.width, self._fitting(lead), "")
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
