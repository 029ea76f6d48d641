"""Makes text from models, tools and disk safe to print: what a terminal would obey or hide becomes visible.

Knows nothing of what the text is about. Everything that did not come from this program's own sources goes through
here before it reaches a terminal; JSON output does not need it, because JSON escapes by itself.
"""

import re

__all__ = ["escape"]

_INVISIBLE = (
    "\x00-\x1f\x7f-\x9f"  # C0 and C1 controls: ESC, CSI, OSC, backspace, carriage return
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # soft hyphen, joiners and fillers without a glyph
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f"  # zero width, line separators, bidi marks, overrides, isolates
    "\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb"  # fillers, variation selectors, byte order mark
    "\ud800-\udfff"  # lone surrogates: no encoding can print them
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # tag characters hide whole sentences
)
_UNSAFE = re.compile(f"[{_INVISIBLE}]")
_UNSAFE_IN_LINES = re.compile(f"(?![\\n\\t])[{_INVISIBLE}]")
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def escape(text: str, *, multiline: bool = False) -> str:
    r"""The text with each control, bidi, zero-width and otherwise invisible character written as an escape.

    Written as `\n`, `\x1b`, `\u202e`, `\U000e0041`. `multiline` keeps line feeds and tabs; a carriage return is
    always shown, because it lets a line overwrite itself. Backslashes stay as they are. Safe text comes back as is.
    The result holds no terminal sequence, yet markup such as `[red]` is untouched: print it with markup off.
    """
    pattern = _UNSAFE_IN_LINES if multiline else _UNSAFE
    return pattern.sub(_written_out, text)


def _written_out(match: re.Match[str]) -> str:
    character = match.group()
    if short := _SHORT.get(character):
        return short
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
