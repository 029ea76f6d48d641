"""The words of every front end: foreign text made visible, times and counts, and the answers to choose from.

All text from models, tools and disk goes through `escape` before a person sees it; JSON output escapes by itself.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

__all__ = [
    "APPROVAL",
    "BACK",
    "OUTSIDE",
    "PLAN",
    "RECOVERY",
    "RULES",
    "SCOPES",
    "Choice",
    "age_seconds",
    "escape",
    "format_age",
    "format_count",
    "format_names",
    "fuzzy_pattern",
    "mixed_alphabets",
    "parts",
]

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


@cache
def _unsafe(*, multiline: bool) -> re.Pattern[str]:
    """What `escape` looks for; compiled only for the first text that is not plain."""
    kept = r"(?![\n\t])" if multiline else ""
    return re.compile(f"({_EMOJI})|({kept}[{_INVISIBLE}])")


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
    return _unsafe(multiline=multiline).sub(lambda found: found[1] or _written_out(found[2]), text)


def parts(text: str) -> Iterator[tuple[str, bool]]:
    """The pieces of one line as `escape` writes them, each with whether it is an escape."""

    def pieces() -> Iterator[tuple[str, bool]]:
        shown = 0
        for found in _unsafe(multiline=False).finditer(text):
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


_WORD = re.compile(r"\w+")
_ALPHABETS = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "FULLWIDTH", "MATHEMATICAL")


def mixed_alphabets(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each word that mixes Latin letters with others that may look like them, and the names of those others."""
    seen: set[str] = set()
    for text in filter(lambda value: isinstance(value, str) and not value.isascii(), arguments.values()):
        for word in _WORD.findall(text):
            foreign = {char for char in word if _alphabet(char) not in ("", "LATIN")}
            if word not in seen and foreign and any(_alphabet(char) == "LATIN" for char in word):
                seen.add(word)
                yield word, ", ".join(f"U+{ord(char):04X} {unicodedata.name(char)}" for char in sorted(foreign))


def _alphabet(char: str) -> str:
    name = unicodedata.name(char, "")
    return next((alphabet for alphabet in _ALPHABETS if name.startswith(alphabet)), "")


_UNITS = (("d", 86_400, "d"), ("h", 3_600, "h"), ("m", 60, "min"), ("s", 1, "s"))
_MAX_NAMES = 8


def format_age(iso: str | None) -> str:
    """How long ago a stored time was, e.g. `3 min ago`; text that is not a time is returned unchanged."""
    seconds = age_seconds(iso)
    if seconds is None:
        return iso or ""
    for _, size, word in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {word} ago"
    return "just now"


def age_seconds(iso: str | None) -> float | None:
    """Seconds since a stored time; None if the text is not a time."""
    try:
        return max((datetime.now(UTC) - datetime.fromisoformat(iso or "")).total_seconds(), 0)
    except (ValueError, TypeError):
        return None


def fuzzy_pattern(typed: str) -> re.Pattern[str]:
    """Matches a text that has all typed characters in their order, in upper or lower case."""
    characters = map(re.escape, typed)
    return re.compile("".join(f"[^{one}]*{one}" for one in characters), re.IGNORECASE)


def format_count(count: int, noun: str) -> str:
    """The number with its noun, in the plural unless it is one."""
    ending = "" if count == 1 else "es" if noun.endswith(("s", "x", "ch")) else "s"
    return f"{count:,} {noun}{ending}"


def format_names(names: Sequence[str], more: int = 0) -> str:
    """The first names and the number of others; `more` counts those that are not in `names`."""
    shown, others = names[:_MAX_NAMES], len(names[_MAX_NAMES:]) + more
    listed = ", ".join(shown) or "no files that git tracks"
    return f"{listed} and {others} more" if others else listed


class Choice(NamedTuple):
    """One answer a person may give."""

    key: str
    label: str
    """Behind the key, where there is room: the same in every terminal."""
    explanation: str
    words: tuple[str, ...] = ()
    """Accepted too when typed in full."""
    rank: int = 0
    """0 is always on the line; the higher, the sooner a key is left to the help where there is no room."""


APPROVAL = (
    Choice("y", "run", "run it once", ("yes",)),
    Choice("a", "always", "allow it from now on; the rule is shown first", (), 3),
    Choice("d", "deny", "do not run it, now or later; the rule is shown first", ("always deny",), 6),
    Choice("e", "edit", "change the arguments in your editor; you are asked again", (), 3),
    Choice("n", "reject", "do not run it", ("no",)),
    Choice("r", "feedback", "do not run it, and tell the model why", ("reason",), 3),
    Choice("s", "stop", "stop the turn; nothing that is pending runs", (), 5),
)
OUTSIDE = Choice("o", "outside", "run it once outside the sandbox, with all your rights", (), 4)
"""Offered for a command while a sandbox is on."""
RECOVERY = (
    Choice("r", "retry", "run it again as a new attempt; those of its processes that still run are ended first"),
    Choice("d", "mark as done", "it happened; you may tell the model what", ("done",)),
    Choice("c", "cancel", "do not run it again; the model learns that its outcome is unknown"),
)
PLAN = (
    Choice("y", "start", "leave plan mode; changes need approval"),
    Choice("a", "start, accept edits", "leave plan mode; edits in the workspace run unasked"),
    Choice("n", "not yet", "stay in plan mode; any other text says what to change"),
)
BACK = Choice("b", "back (esc)", "return to the question", ("back", "esc", "n", "no", "q"))
RULES = (
    Choice("e", "exactly", "this very call", ("exact", "1")),
    Choice("a", "any arguments", "every command that begins the same", ("prefix", "2")),
    BACK,
)
"""Which rules an "always" or "always deny" stores, where there is a choice."""
SCOPES = (
    Choice("t", "this thread", "in this conversation", ("thread",)),
    Choice("p", "project", "in this workspace, also in later conversations"),
    Choice("u", "everywhere", "in every workspace", ("user",)),
    BACK,
)
"""The scope of an "always" or "always deny"."""
