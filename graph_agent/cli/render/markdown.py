"""Render streamed Markdown with rich: a block is printed once it is complete, the open block is drawn in place.

Only the marks disappear: HTML, entities, `__init__` and backslashes in paths are shown as they were written.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich import box, markdown
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.syntax import ANSI_DARK, ANSISyntaxTheme, Syntax
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from graph_agent.cli.render.console import fold
from graph_agent.cli.render.themes import color_of
from graph_agent.wording import escape

__all__ = ["MarkdownStream"]

_STYLES = {
    "markdown.h1": "bold underline",
    "markdown.h2": "bold",
    **{f"markdown.h{level}": "bold italic" for level in range(3, 7)},
    "markdown.block_quote": "italic",
    "markdown.link": "underline",
}
_CODE_INDENT = "  "
_LONG_CODE = 60
"""An open code block of more lines is printed up to a line where no string or comment is open."""
_TAIL_CHARS = 4_000
"""How much of an unfinished line is drawn; more hardly fits a screen."""
_NARROWEST = 8
_CELLS_OF_A_LEVEL = 4
_CELLS_OF_A_COLUMN = 5
_LITERAL_ESCAPES = "*`~|#"
"""A backslash before one of these disappears; before another sign it belongs to a path or a formula."""
_PIPE = re.compile(r"(?<!\\)\|")


class MarkdownStream:
    """One text. The lines that `add` and `end` return never change; `tail` shows the rest as it looks now."""

    def __init__(self, console: Console, style: str = "") -> None:
        self._console = console
        self._style = style
        self._lines: list[str] = []
        """Whole lines of the blocks that are still open."""
        self._pieces: list[str] = []
        """The line that is arriving: joined once, however many pieces it has."""
        self._parse_at = 1
        """With so many lines the open blocks are parsed again: a long table is not parsed with each row."""
        self._is_code_open = False
        """Whether the beginning of the open code block is printed."""

    def add(self, text: str) -> list[Text]:
        """Take in a piece of the text; returns the lines that it completes."""
        self._pieces.append(text)
        if "\n" not in text:
            return []
        *lines, partial = "".join(self._pieces).replace("\r\n", "\n").split("\n")
        self._pieces = [partial]
        shown: list[Text] = []
        for line in lines:
            self._lines.append(_printable(line))
            if len(self._lines) >= self._parse_at or not line.strip():
                shown += self._print_complete()
                self._parse_at = len(self._lines) + 1 + len(self._lines) // 8
        return shown

    def tail(self) -> list[Text]:
        """What is not complete yet, as it looks until now."""
        self._pieces = ["".join(self._pieces)]
        line = self._pieces[0][-_TAIL_CHARS:]
        lines = [*self._lines, *([_printable(line)] if line else [])]
        room = self._console.height
        if len(lines) > room + 2 and _cell_count(lines[0]) and _cell_count(lines[-1]):
            # To draw all of a long table with each row would take seconds.
            lines = [*lines[:2], *lines[-room:]]
        return self._draw(_blocks(lines), lines)

    def end(self) -> list[Text]:
        """The text is over: the lines that are left."""
        if partial := "".join(self._pieces):
            self._lines.append(_printable(partial))
        lines, self._lines, self._pieces = self._lines, [], []
        return self._draw(_blocks(lines), lines)

    def _print_complete(self) -> list[Text]:
        lines = self._lines
        blocks = _blocks(lines)
        if not blocks:
            # Blank lines, which nothing can change.
            self._lines = []
            return [Text("") for _ in lines]
        last = blocks[-1]
        if last.is_closed(lines):
            self._lines = []
            shown = self._draw(blocks, lines)
            self._is_code_open = False
            return shown
        shown = self._draw(blocks[:-1], lines[: last.start])
        self._is_code_open = self._is_code_open and len(blocks) == 1
        self._lines = lines[last.start :]
        if last.is_open_code and len(self._lines) > _LONG_CODE:
            shown += self._print_code(last)
        return shown

    def _print_code(self, block: "_Block") -> list[Text]:
        """Print the beginning of a long code block; what is left of it begins with the same fence."""
        code, language = block.tokens[0].content.split("\n")[:-1], block.language
        lexer = Syntax("", language or "text").lexer
        inside: set[int] = set()  # lines at whose beginning a string or comment is open
        number = 0
        for kind, text in lexer.get_tokens("\n".join(code)) if lexer else ():
            breaks = text.count("\n")
            if breaks and str(kind).startswith(("Token.Literal.String", "Token.Comment.Multiline")):
                inside.update(range(number + 1, number + breaks + 1))
            number += breaks
        last = len(code) if lexer is None else len(code) - 1
        cut = next((line for line in range(last, 0, -1) if line not in inside), 0)
        if not cut:
            return []
        lines = self._lines[: cut + 1]
        shown = self._draw(_blocks(lines), lines)
        self._lines = [self._lines[0], *self._lines[cut + 1 :]]
        self._is_code_open = True
        return shown

    def _draw(self, blocks: "Sequence[_Block]", lines: Sequence[str]) -> list[Text]:
        shown: list[Text] = []
        position = 0
        for number, block in enumerate(blocks):
            shown += [Text("") for line in lines[position : block.start] if not line.strip()][:1]
            position = block.end
            while position > block.start and not lines[position - 1].strip():
                position -= 1
            part = list(lines[block.start : position])
            shown += self._draw_block(block, part, is_continued=self._is_code_open and not number)
        shown += [Text("") for _ in lines[position:]][:1]
        if self._style:
            for line in shown:
                line.stylize_before(self._style)
        return shown

    def _draw_block(self, block: "_Block", source: Sequence[str], *, is_continued: bool) -> list[Text]:
        # The last column stays free where lines are redrawn, so that none is cut while it streams.
        width = max(self._console.width - self._console.is_interactive, 1)
        if not block.fits(source, width):
            return [piece for line in source for piece in fold(Text(line), width)]
        with self._console.use_theme(_theme(color_of("cyan"), color_of("dim"))):
            options = self._console.options.update(width=width)
            rendered = self._console.render_lines(_Rendered(block.tokens), options, pad=False)
        drawn = [Text.assemble(*((piece.text, piece.style or "") for piece in line)) for line in rendered]
        for line in drawn:
            line.rstrip()
        while drawn and not drawn[0].plain:
            del drawn[0]  # Rich separates blocks by a line of its own.
        if is_continued and block.language:
            drawn = drawn[1:]
        return [piece for line in drawn for piece in fold(line, width)]


@dataclass(frozen=True, slots=True)
class _Block:
    """A block of the text, or one item of a list: each is printed when it is complete."""

    tokens: list[Token]
    start: int
    end: int
    """Its lines."""

    @property
    def is_open_code(self) -> bool:
        return self.tokens[0].type == "fence"

    @property
    def language(self) -> str:
        return self.tokens[0].info.partition(" ")[0] if self.is_open_code else ""

    def is_closed(self, lines: Sequence[str]) -> bool:
        """Whether no further line can belong to it."""
        first = self.tokens[0]
        match first.type:
            case "fence":
                closing = lines[self.end - 1].strip()
                has_two = self.end - self.start > 1
                return has_two and closing.startswith(first.markup) and not closing.strip(first.markup[0])
            case "heading_open" | "hr":
                return True
            case "paragraph_open" | "table_open":
                return not lines[-1].strip()
            case _:
                return False

    def fits(self, source: Sequence[str], width: int) -> bool:
        """Whether rich can show all of it: in too narrow a column it drops text, and cells without a head, too."""
        depth = max(token.level for token in self.tokens) // 2
        if width - depth * _CELLS_OF_A_LEVEL < _NARROWEST:
            return False
        if self.tokens[0].type != "table_open":
            return True
        columns = _cell_count(source[0])
        return columns * _CELLS_OF_A_COLUMN <= width and all(_cell_count(row) <= columns for row in source)


# An entity may stand for a control character; a definition of a link would disappear.
_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
_PARSER.disable(["entity", "reference", "html_inline", "text_join"])
_PARSER.normalizeLink = lambda url: url  # type: ignore[method-assign]  # a link is shown as it was written


def _blocks(lines: Sequence[str]) -> list[_Block]:
    tokens = _PARSER.parse("\n".join(lines))
    blocks: list[_Block] = []
    start = 0
    for position, token in enumerate(tokens):
        if token.children:
            token.children = list(_with_literal_marks(token.children))
        if token.level == 0 and token.nesting <= 0:
            blocks += _items(tokens[start : position + 1])
            start = position + 1
    return blocks


def _items(tokens: list[Token]) -> Iterator[_Block]:
    """The block of these tokens, or each item of a list as a list of its own."""
    opening, closing = tokens[0], tokens[-1]
    if opening.type not in ("bullet_list_open", "ordered_list_open"):
        yield _Block(tokens, *(opening.map or (0, 0)))
        return
    start = 1
    for position, token in enumerate(tokens):
        if token.type == "list_item_close" and token.level == 1:
            item = tokens[start : position + 1]
            start = position + 1
            attrs = {"start": int(item[0].info or 1)} if opening.type == "ordered_list_open" else {}
            yield _Block([opening.copy(attrs=attrs), *item, closing], *(item[0].map or (0, 0)))


def _with_literal_marks(tokens: Sequence[Token]) -> Iterator[Token]:
    """The inline tokens as rich is to show them."""
    urls: list[str] = []
    label = ""
    for token in tokens:
        match token.type:
            case "softbreak":
                yield Token("hardbreak", "br", 0)
                continue
            case "link_open":
                urls.append(str(token.attrs.get("href", "")))
                label = ""
                yield Token("linked_open", "link", 1)
                continue
            case "link_close":
                yield Token("linked_close", "link", -1)
                url = urls.pop()
                if label != url and not url.endswith(f":{label}"):
                    # A terminal's own links would hide where they lead to.
                    yield Token("url", "link_url", 0, content=f" ({url})")
                continue
            case "em_open" | "em_close" | "strong_open" | "strong_close" if token.markup.startswith("_"):
                shown: str | None = token.markup
            case "text_special":
                shown = token.content if token.content in _LITERAL_ESCAPES else token.markup
            case "image":
                shown = f"{token.content} ({token.attrs.get('src', '')})"
            case _:
                shown = None
        label += token.content
        yield token if shown is None else Token("text", "", 0, content=shown)


class _Heading(markdown.Heading):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _CodeBlock(markdown.CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).removesuffix("\n")
        if self.lexer_name not in ("", "text"):
            yield from fold(Text(self.lexer_name, "dim"), options.max_width, _CODE_INDENT)
        shown = Syntax("", self.lexer_name or "text", theme=_code_theme(color_of("cyan"))).highlight(code)
        shown.right_crop(len(shown.plain) - len(code))
        # A lexer that changes the text is not to be trusted with it.
        for line in (shown if shown.plain == code else Text(code)).split("\n", allow_blank=True):
            yield from fold(line, options.max_width, _CODE_INDENT)


class _TableElement(markdown.TableElement):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
        for cell in self.header.row.cells if self.header and self.header.row else ():
            table.add_column(cell.content, justify=cell.justify, overflow="fold")
        for row in self.body.rows if self.body else ():
            table.add_row(*(cell.content for cell in row.cells))
        yield table


class _ListElement(markdown.ListElement):
    """Items with the marks they have in the text: rich leaves out the dot behind a number."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for number, item in enumerate(self.items, self.list_start or 0):
            mark = "• " if self.list_type == "bullet_list_open" else f"{number}. "
            lines = console.render_lines(
                item.elements, options.update(width=options.max_width - len(mark)), pad=False
            )
            for position, line in enumerate(lines or [[]]):
                yield Segment(" " * len(mark) if position else mark)
                yield from line
                yield Segment.line()


class _Rendered(markdown.Markdown):
    """Rich's Markdown on tokens that are parsed already."""

    elements: ClassVar[dict[str, type[markdown.MarkdownElement]]] = {
        **markdown.Markdown.elements,
        "heading_open": _Heading,
        "fence": _CodeBlock,
        "code_block": _CodeBlock,
        "table_open": _TableElement,
        "bullet_list_open": _ListElement,
        "ordered_list_open": _ListElement,
    }
    inlines = markdown.Markdown.inlines | {"link", "link_url"}

    def __init__(self, tokens: list[Token]) -> None:
        super().__init__("")
        self.parsed = tokens


def _cell_count(row: str) -> int:
    """How many cells of a table the line has; 0 where it is no row."""
    inner = row.strip()
    return len(_PIPE.findall(inner.removeprefix("|"))) + (not inner.endswith("|")) if "|" in inner else 0


def _printable(line: str) -> str:
    return escape(line, multiline=True).expandtabs(4)


@cache
def _theme(cyan: str | None, dim: str | None) -> Theme:
    """The styles in these colours, or in the terminal's own."""
    muted = dim or "dim"
    return Theme({**_STYLES, "markdown.code": cyan or "cyan", "markdown.hr": muted, "markdown.link_url": muted})


@cache
def _code_theme(cyan: str | None) -> ANSISyntaxTheme:
    """Colours of code; those of the current theme, which its `cyan` identifies."""
    if cyan is None:
        return ANSISyntaxTheme(ANSI_DARK)
    return ANSISyntaxTheme({token: _recolored(style) for token, style in ANSI_DARK.items()})


def _recolored(style: Style) -> Style:
    if style.color is None:
        return style
    name = style.color.name.removeprefix("bright_")
    return Style(
        color=color_of("dim" if name == "black" else name),
        bold=style.bold,
        italic=style.italic,
        underline=style.underline,
    )
