"""Make text from models, tools and disk safe to print: what a terminal would obey or hide becomes visible.

All foreign text goes through here before it reaches a terminal; JSON output does its own escaping.
"""

import os
import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import itemgetter

__all__ = ["escape", "is_plain_terminal", "parts", "supports_escapes"]

_INVISIBLE = (
    "\x00-\x1f\x7f-\x9f"  # C0 and C1 controls: ESC, CSI, OSC, backspace, carriage return
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # soft hyphen, joiners and fillers without a glyph
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f"  # zero width, line separators, bidi marks, overrides, isolates
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"  # fillers, variation selectors, byte order mark
    "\ud800-\udfff"  # lone surrogates: no encoding can print them
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # tag characters hide whole sentences
)
_PICTURE = (
    "[\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25aa-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001f3fa\U0001f400-\U0001faff]"
)
_TONED = f"{_PICTURE}(?:\ufe0f|[\U0001f3fb-\U0001f3ff])?"
_ENGLISH, _SCOTTISH, _WELSH = (
    "".join(("\U0001f3f4", *(chr(0xE0000 + ord(letter)) for letter in region), "\U000e007f"))
    for region in ("gbeng", "gbsct", "gbwls")
)
_EMOJI = f"{_TONED}(?:\u200d{_TONED}){{1,7}}|{_PICTURE}\ufe0f|[0-9#*]\ufe0f\u20e3|{_ENGLISH}|{_SCOTTISH}|{_WELSH}"
"""One picture of several characters: within it a joiner or selector hides nothing."""
_UNSAFE = re.compile(f"({_EMOJI})|([{_INVISIBLE}])")
_UNSAFE_IN_LINES = re.compile(f"({_EMOJI})|((?![\\n\\t])[{_INVISIBLE}])")
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def escape(text: str, *, multiline: bool = False) -> str:
    r"""The text with each control, bidi, zero-width and otherwise invisible character written as an escape.

    Written as `\n`, `\x1b`, `\u202e`, `\U000e0041`. `multiline` keeps line feeds and tabs; a carriage return is
    always shown, because it lets a line overwrite itself. Backslashes stay as they are, and so do the joiners and
    selectors within an emoji. Safe text comes back as is. The result holds no terminal sequence, yet markup such as
    `[red]` is untouched: print it with markup off.
    """
    if text.isascii() and text.isprintable():
        return text
    pattern = _UNSAFE_IN_LINES if multiline else _UNSAFE
    return pattern.sub(lambda found: found[1] or _written_out(found[2]), text)


def parts(text: str) -> Iterator[tuple[str, bool]]:
    """The pieces of one line as `escape` writes them, each with whether it is an escape."""

    def pieces() -> Iterator[tuple[str, bool]]:
        shown = 0
        for found in _UNSAFE.finditer(text):
            if found[2] is not None:
                yield text[shown : found.start()], False
                yield _written_out(found[2]), True
                shown = found.end()
        yield text[shown:], False

    for is_escaped, run in groupby((piece for piece in pieces() if piece[0]), key=itemgetter(1)):
        yield "".join(part for part, _ in run), is_escaped


def _written_out(character: str) -> str:
    if short := _SHORT.get(character):
        return short
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_DUMB = ("dumb", "unknown")


def is_plain_terminal(environment: Mapping[str, str] | None = None) -> bool:
    """Whether nothing is ever redrawn: with GRAPH_AGENT_PLAIN, for screen readers, or TERM=dumb."""
    known = os.environ if environment is None else environment
    return known.get("GRAPH_AGENT_PLAIN", "") not in ("", "0") or not supports_escapes(known)


def supports_escapes(environment: Mapping[str, str] | None = None) -> bool:
    """Whether the terminal understands escape sequences."""
    known = os.environ if environment is None else environment
    return known.get("TERM", "").lower() not in _DUMB
