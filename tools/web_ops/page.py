"""A page as text for the model: HTML as Markdown, other text unchanged, an error for anything else."""

import re
import warnings
from contextlib import suppress

from bs4 import BeautifulSoup, XMLParsedAsHTMLWarning
from markdownify import MarkdownConverter

from tools.web_ops.http import Page

__all__ = ["NotText", "page_text"]

_UNSEEN = ("script", "style", "noscript", "template", "svg", "iframe", "object", "head")
_TEXT_TYPES = re.compile(r"text/.*|application/(.*\+)?(json|xml|javascript|yaml|toml|x-sh|x-ndjson|sql).*|")
_HTML_TYPES = ("text/html", "application/xhtml+xml")
_BLANKS = re.compile(r"[ \t]+\n|\n{3,}")


class NotText(ValueError):
    """The page is not text; the message says what it is."""


def page_text(page: Page) -> tuple[str, str]:
    """Title and text of a page.

    Raises:
        NotText: it is an image, an archive or the like.
    """
    starts_as_html = page.body[:1024].lstrip().lower().startswith((b"<!doctype html", b"<html"))
    if page.content_type in _HTML_TYPES or (not page.content_type and starts_as_html):
        return _html(page)
    if _TEXT_TYPES.fullmatch(page.content_type) is None or b"\0" in page.body[:8192]:
        kind = page.content_type or "binary data"
        raise NotText(f"{page.address.url} is {kind}, {len(page.body)} bytes, not text")
    for encoding in filter(None, (page.charset, "utf-8-sig")):
        with suppress(LookupError, UnicodeDecodeError):
            return "", page.body.decode(encoding)
    return "", page.body.decode("utf-8", "replace")


def _html(page: Page) -> tuple[str, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", XMLParsedAsHTMLWarning)
        soup = BeautifulSoup(page.body, "html.parser", from_encoding=page.charset or None)
    title = " ".join(soup.title.get_text().split()) if soup.title else ""
    for element in soup.find_all(_UNSEEN):
        element.decompose()
    try:
        text = MarkdownConverter(heading_style="ATX", bullets="-").convert_soup(soup)
    except RecursionError:
        # Nested too deeply: the words are kept, the layout is not.
        text = soup.get_text("\n")
    return title, _BLANKS.sub(lambda gap: "\n" if gap[0][0] in " \t" else "\n\n", text).strip()
