"""Words and simple commands of a shell text: what a word says without its quotes, and whether it may say more."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple

__all__ = [
    "Node",
    "Piece",
    "Position",
    "SimpleCommand",
    "Word",
    "brace_expansion",
    "expansion_reason",
    "holds_code",
    "is_invisible",
    "read_word",
    "unescaped",
]

Node = Mapping[str, Any]
"""A node of the syntax tree that shfmt prints as JSON."""


class Position(NamedTuple):
    """Where a command stands in its text."""

    offset: int = -1
    requires: frozenset[tuple[int, bool]] = frozenset()
    """Changes of folder, by their offset, that have succeeded or failed if it is run."""
    repeats: bool = False
    """It is in a loop."""
    overlaps: bool = False
    """Commands after it may run before it, or at the same time: it is in a loop, a pipeline or the background."""


@dataclass(frozen=True)
class SimpleCommand:
    """One program, or built-in, with its arguments; leading assignments come first."""

    words: tuple[str, ...]
    """After quote and escape removal; what is known only when it runs is kept as it was written."""
    stdin: str = field(default="", compare=False)
    """Its input, as far as the text contains it: a here-document, a here-string, an `echo`."""
    patterns: frozenset[int] = field(default=frozenset(), compare=False)
    """Positions of words that the shell would replace by the names of files they match."""
    shell: tuple[int | str, ...] = field(default=(), compare=False)
    """Numbers of the shells within shells that run it; none for the shell of the text itself. A name among them is
    that of the function whose body it belongs to."""
    folder: str = field(default="", compare=False)
    """Where it is run if every change of folder before it succeeds, from the folder the text starts in."""
    folders: tuple[str | None, ...] = field(default=("",), compare=False)
    """Every folder that it may work in; None among them stands for one that is not known."""
    computed: frozenset[int] = field(default=frozenset(), compare=False)
    """Positions of words whose value is known only when it runs: variables, substitutions, patterns."""
    is_piped: bool = field(default=False, compare=False)
    """Whether its input comes from a pipe."""
    position: Position = field(default=Position(), compare=False)
    leads_elsewhere: bool = field(default=False, compare=False)
    """Whether a path among its words may lead elsewhere after an earlier command, so that it may write anything."""

    @property
    def text(self) -> str:
        """The words joined by one blank: what rules match."""
        return " ".join(self.words)


@dataclass(frozen=True)
class Word:
    """One word of a command."""

    text: str
    """After quote and escape removal; an expansion is kept as it was written."""
    unclear_reason: str = ""
    """Why the shell may see something else; empty where it cannot."""
    is_pattern: bool = False
    """Whether names of files may take its place."""
    braces: tuple[str, ...] = ()
    """The words it becomes where the shell expands braces in it, as far as they can be told."""

    @property
    def expanded(self) -> tuple[str, ...]:
        """The words that take its place once braces are expanded."""
        return self.braces or (self.text,)


_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED_IN_QUOTES = re.compile(r'\\([$`"\\\n])')
_ANSI = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|[0-7]{1,3}|c.|.)", re.DOTALL)
_ANSI_LETTERS = dict(zip("abeEfnrtv", "\a\b\x1b\x1b\f\n\r\t\v", strict=True))
_GLOB = re.compile(r"[*?]|\[.*\]", re.DOTALL)
_BARE_OR_ESCAPED = re.compile(r"([^\\]+)|(\\.?)", re.DOTALL)
_TILDE = re.compile(r"~|[A-Za-z_]\w*(?:\[.*\])?\+?=(?:.*:)?~", re.DOTALL)
_TILDE_IN_VALUE = re.compile(r"(?:.*:)?~", re.DOTALL)
_INVISIBLE_MARKS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0e\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)
"""Characters that Unicode classes as letters or marks, and that no terminal shows."""


def is_invisible(char: str) -> bool:
    """Whether a character is a control or invisible one, newline and tab excepted."""
    is_control = unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
    return char not in "\n\t" and (is_control or _INVISIBLE_MARKS.match(char) is not None)


def holds_code(text: str) -> bool:
    """Whether arithmetic, or a built-in that is given the name of a variable, would run something in the text."""
    return "[" in text and ("$(" in text or "`" in text)


def expansion_reason(kind: str | None) -> str:
    """Why a word with a node of this kind in it is unclear."""
    match kind:
        case "CmdSubst" | "ProcSubst":
            return "it substitutes a command"
        case "ExtGlob":
            return "it uses an extended pattern"
        case _:
            return "the shell would expand a '$'"


def read_word(node: Node, source: bytes, *, is_value: bool = False) -> Word:
    """Read a word of the syntax tree; `source` is the text the tree was made from.

    `is_value`: it follows the `=` of an assignment, where each part between colons may begin with `~`.
    """
    texts: list[str] = []
    bare: list[str] = []
    reason = ""
    for part in node.get("Parts", ()):
        text, why = _read_part(part, source)
        texts.append(text)
        # Quoted text keeps its place here: `{a,"b"}` is expanded too.
        bare.append(_ESCAPED.sub("'", part["Value"]) if part.get("Type") == "Lit" else "'")
        reason = reason or why
    unquoted = "".join(bare)
    if not reason and (_TILDE_IN_VALUE if is_value else _TILDE).match(unquoted):
        reason = "the shell would expand '~'"
    is_braced = _has_braces(unquoted)
    if not reason and is_braced:
        reason = "the shell would expand '{'"
    braces = brace_expansion(_pieces(node, texts)) if is_braced else ()
    return Word("".join(texts), reason, is_pattern=_GLOB.search(unquoted) is not None, braces=braces)


def _read_part(part: Node, source: bytes) -> tuple[str, str]:
    match part.get("Type"):
        case "Lit":
            return _ESCAPED.sub(_unquoted, part["Value"]), ""
        case "SglQuoted" if part.get("Dollar"):
            return unescaped(part.get("Value", "")), "it uses the quotes $'…'"
        case "SglQuoted":
            return part.get("Value", ""), ""
        case "DblQuoted":
            return _read_double_quotes(part, source)
        case kind:
            return _as_written(part, source), expansion_reason(kind)


def _read_double_quotes(part: Node, source: bytes) -> tuple[str, str]:
    text, reason = "", 'it uses the quotes $"…"' if part.get("Dollar") else ""
    for inner in part.get("Parts", ()):
        if inner.get("Type") == "Lit":
            text += _ESCAPED_IN_QUOTES.sub(_unquoted, inner["Value"])
        else:
            text += _as_written(inner, source)
            reason = reason or expansion_reason(inner.get("Type"))
    return text, reason


def _unquoted(escaped: re.Match[str]) -> str:
    return escaped[1].replace("\n", "")


def _as_written(part: Node, source: bytes) -> str:
    return source[part["Pos"].get("Offset", 0) : part["End"].get("Offset", 0)].decode("utf-8", "replace")


def unescaped(text: str) -> str:
    """What `$'…'`, `echo -e` and `printf` make of a text."""
    return _ANSI.sub(_ansi_character, text)


def _ansi_character(escape: re.Match[str]) -> str:
    code = escape[1]
    number: int | None = None
    if code[0] in "xuU" and len(code) > 1:
        number = int(code[1:], 16)
    elif code[0] in "01234567":
        number = int(code, 8)
    elif code[0] == "c" and len(code) > 1:
        number = ord(code[1]) & 0x1F
    if number is None:
        return _ANSI_LETTERS.get(code, code)
    return chr(number) if number < 0x110000 else "\ufffd"


class Piece(NamedTuple):
    """A part of a word."""

    text: str
    is_bare: bool
    """Not quoted: its braces and commas are signs."""


_BRACE_SIGNS = re.compile(r"([{},])")
_NUMBERS = re.compile(r"(-?\d{1,9})\.\.(-?\d{1,9})(?:\.\.(-?\d{1,9}))?")
_LETTERS = re.compile(r"([A-Za-z])\.\.([A-Za-z])")
_MAX_WORDS = 64
"""How many words a brace expansion may give; of more, none is given."""
_MAX_PIECES = 400


def _has_braces(text: str) -> bool:
    """Whether a pair of braces holds a comma or `..`; one that is never closed is taken for a pair."""
    opened: list[int] = []
    for at, char in enumerate(text):
        if char == "{":
            opened.append(at)
        elif char == "}" and opened and _has_choice(text[opened.pop() : at]):
            return True
    return bool(opened) and _has_choice(text[opened[0] :])


def _has_choice(text: str) -> bool:
    return "," in text or ".." in text


def _pieces(node: Node, texts: list[str]) -> Iterator[Piece]:
    for part, text in zip(node.get("Parts", ()), texts, strict=True):
        if part.get("Type") != "Lit":
            yield Piece(text, is_bare=False)
            continue
        for bare, escaped in _BARE_OR_ESCAPED.findall(part["Value"]):
            yield Piece(bare or escaped[1:].replace("\n", ""), is_bare=bool(bare))


def brace_expansion(pieces: Iterable[Piece]) -> tuple[str, ...]:
    """The words that one word becomes, empty ones left out; none where they are too many."""
    split: list[Piece] = []
    for piece in pieces:
        texts = _BRACE_SIGNS.split(piece.text) if piece.is_bare else [piece.text]
        split += [Piece(text, is_bare=piece.is_bare) for text in texts if text]
    waiting = [tuple(split)]
    words: list[str] = []
    while waiting:
        word = waiting.pop()
        choice = _first_choice(word) if len(word) <= _MAX_PIECES else None
        if choice is None:
            words.append("".join(piece.text for piece in word))
        else:
            begin, end, ways = choice
            waiting += [(*word[:begin], *way, *word[end + 1 :]) for way in reversed(ways)]
        if len(waiting) + len(words) > _MAX_WORDS:
            return ()
    return tuple(filter(None, words))


def _first_choice(word: tuple[Piece, ...]) -> tuple[int, int, list[tuple[Piece, ...]]] | None:
    """Begin, end and alternatives of the leftmost pair of braces that holds commas or a range."""
    opened: list[list[int]] = []
    found: list[tuple[int, int, list[tuple[Piece, ...]]]] = []
    for at, piece in enumerate(word):
        if not piece.is_bare:
            continue
        if piece.text == "{":
            opened.append([at])
        elif piece.text == "," and opened:
            opened[-1].append(at)
        elif piece.text == "}" and opened:
            cuts = [*opened.pop(), at]
            ways = [word[one + 1 : other] for one, other in pairwise(cuts)]
            ways = ways if len(ways) > 1 else _range_ways(ways[0])
            found += [(cuts[0], at, ways)] if ways else []
    return min(found, key=itemgetter(0), default=None)


def _range_ways(inner: tuple[Piece, ...]) -> list[tuple[Piece, ...]]:
    text = inner[0].text if len(inner) == 1 and inner[0].is_bare else ""
    texts: Iterable[str] = ()
    if letters := _LETTERS.fullmatch(text):
        texts = map(chr, _inclusive_range(ord(letters[1]), ord(letters[2]), 1))
    elif numbers := _NUMBERS.fullmatch(text):
        first, last, step = int(numbers[1]), int(numbers[2]), abs(int(numbers[3] or 1)) or 1
        width = max(map(len, numbers.group(1, 2))) if re.search(r"(?<!\d)0\d", text) else 0
        texts = (str(number).zfill(width) for number in _inclusive_range(first, last, step))
    return [(Piece(each, is_bare=True),) for each in texts]


def _inclusive_range(first: int, last: int, step: int) -> range:
    """Both included, and no more than one above the limit, which is enough to see that there are too many."""
    way = step if first <= last else -step
    return range(first, last + (1 if way > 0 else -1), way)[: _MAX_WORDS + 1]
