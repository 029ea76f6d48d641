"""Marks within one line of Markdown: code, bold, links. Whatever is no mark stays as it was written.

Nothing disappears but the marks themselves: HTML, escapes of other signs and names such as `__init__` are text.
"""

from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.text import Text

__all__ = ["inline"]

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
