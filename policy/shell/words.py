"""Words and characters of a shell text: what they say once quotes are gone, and whether that is all they say.

Brace expansion: the words that one word becomes before the shell looks for anything else in it.

Knows words as pieces, each bare or quoted; reads no syntax.

A simple command of a shell text, and what is known of a word of it before it runs.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

__all__ = ["Piece", "SimpleCommand", "Word", "holds_code", "is_invisible", "read_word", "spellings", "unescaped"]

_SIGNS = re.compile(r"([{},])")
_NUMBERS = re.compile(r"(-?\d{1,9})\.\.(-?\d{1,9})(?:\.\.(-?\d{1,9}))?")
_LETTERS = re.compile(r"([A-Za-z])\.\.([A-Za-z])")
_MOST = 64
"""So many words of one are told apart."""
_MOST_PIECES = 400


class Piece(NamedTuple):
    """A part of a word."""

    text: str
    is_bare: bool
    """Not quoted: its braces and commas are signs."""


class _Choice(NamedTuple):
    begin: int
    end: int
    ways: list[tuple[Piece, ...]]


def spellings(pieces: Iterable[Piece]) -> tuple[str, ...]:
    """The words, empty ones left out; none where they are too many to be told."""
    waiting = [tuple(_signs_apart(pieces))]
    found: list[str] = []
    while waiting:
        word = waiting.pop()
        choice = _first_choice(word) if len(word) <= _MOST_PIECES else None
        if choice is None:
            found.append("".join(piece.text for piece in word))
        else:
            rest = word[choice.end + 1 :]
            waiting += [(*word[: choice.begin], *way, *rest) for way in reversed(choice.ways)]
        if len(waiting) + len(found) > _MOST:
            return ()
    return tuple(filter(None, found))


def _signs_apart(pieces: Iterable[Piece]) -> Iterator[Piece]:
    for piece in pieces:
        texts = _SIGNS.split(piece.text) if piece.is_bare else [piece.text]
        yield from (Piece(text, is_bare=piece.is_bare) for text in texts if text)


def _first_choice(word: tuple[Piece, ...]) -> _Choice | None:
    """The leftmost pair of braces with commas, or a range, in it."""
    opened: list[list[int]] = []
    found: list[_Choice] = []
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
            ways = ways if len(ways) > 1 else _ranged(ways[0])
            found += [_Choice(cuts[0], at, ways)] if ways else []
    return min(found, key=lambda choice: choice.begin, default=None)


def _ranged(inner: tuple[Piece, ...]) -> list[tuple[Piece, ...]]:
    text = inner[0].text if len(inner) == 1 and inner[0].is_bare else ""
    if letters := _LETTERS.fullmatch(text):
        return [(Piece(chr(code), is_bare=True),) for code in _between(ord(letters[1]), ord(letters[2]), 1)]
    if numbers := _NUMBERS.fullmatch(text):
        first, last, step = int(numbers[1]), int(numbers[2]), abs(int(numbers[3] or 1)) or 1
        width = max(map(len, numbers.group(1, 2))) if re.search(r"(?<!\d)0\d", text) else 0
        return [(Piece(str(number).zfill(width), is_bare=True),) for number in _between(first, last, step)]
    return []


def _between(first: int, last: int, step: int) -> range:
    """Both included; of more than can be told, as many as show it."""
    way = step if first <= last else -step
    return range(first, last + (1 if way > 0 else -1), way)[: _MOST + 1]


_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED_IN_QUOTES = re.compile(r'\\([$`"\\\n])')
_ANSI = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|[0-7]{1,3}|c.|.)", re.DOTALL)
_ANSI_LETTERS = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}
_GLOB = re.compile(r"[*?]|\[.*\]", re.DOTALL)
_BARE_OR_ESCAPED = re.compile(r"([^\\]+)|(\\.?)", re.DOTALL)
_TILDE = re.compile(r"~|[A-Za-z_]\w*(?:\[.*\])?\+?=(?:.*:)?~", re.DOTALL)
_TILDE_IN_VALUE = re.compile(r"(?:.*:)?~", re.DOTALL)
_MARKS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0e\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)
"""What Unicode calls letters or marks, and no terminal shows."""


@dataclass(frozen=True)
class Word:
    """One word of a command."""

    text: str
    """After quote and escape removal; an expansion stands as it was written."""
    doubt: str = ""
    """Why the shell may see something else; empty where it cannot."""
    is_pattern: bool = False
    """Whether names of files may take its place."""
    spellings: tuple[str, ...] = ()
    """The words it becomes where the shell expands braces in it, as far as they can be told."""

    @property
    def becoming(self) -> tuple[str, ...]:
        """What stands in the place of it once braces are gone."""
        return self.spellings or (self.text,)


def is_invisible(char: str) -> bool:
    """Whether a character is a control or invisible one, newline and tab excepted."""
    is_control = unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
    return char not in "\n\t" and (is_control or _MARKS.match(char) is not None)


def read_word(node: Mapping[str, Any], source: bytes, *, is_value: bool = False) -> Word:
    """Read a word of the syntax tree; `source` is the text the tree was made from.

    `is_value`: it stands behind the `=` of an assignment, where each part between colons may begin with `~`.
    """
    pieces: list[str] = []
    bare: list[str] = []
    doubt = ""
    for part in node.get("Parts", ()):
        text, why = _part(part, source)
        pieces.append(text)
        # Quoted text keeps its place here: `{a,"b"}` is expanded too.
        bare.append(_ESCAPED.sub("'", part["Value"]) if part.get("Type") == "Lit" else "'")
        doubt = doubt or why
    unquoted = "".join(bare)
    if not doubt and (_TILDE_IN_VALUE if is_value else _TILDE).match(unquoted):
        doubt = "the shell would expand '~'"
    is_braced = _expands_braces(unquoted)
    if not doubt and is_braced:
        doubt = "the shell would expand '{'"
    becoming = spellings(_apart(node, pieces)) if is_braced else ()
    return Word("".join(pieces), doubt, is_pattern=_GLOB.search(unquoted) is not None, spellings=becoming)


def holds_code(text: str) -> bool:
    """Whether arithmetic, or a built-in that is given the name of a variable, would run something in the text."""
    return "[" in text and ("$(" in text or "`" in text)


def unescaped(text: str) -> str:
    """What `$'…'`, `echo -e` and `printf` make of a text."""
    return _ANSI.sub(_ansi, text)


def _apart(node: Mapping[str, Any], texts: list[str]) -> Iterator[Piece]:
    for part, text in zip(node.get("Parts", ()), texts, strict=True):
        if part.get("Type") != "Lit":
            yield Piece(text, is_bare=False)
            continue
        for bare, escaped in _BARE_OR_ESCAPED.findall(part["Value"]):
            yield Piece(bare or escaped[1:].replace("\n", ""), is_bare=bool(bare))


def _expands_braces(text: str) -> bool:
    """Whether a comma or `..` stands in a pair of braces; one that is never closed is taken to be."""
    opened: list[int] = []
    for at, char in enumerate(text):
        if char == "{":
            opened.append(at)
        elif char == "}" and opened and _has_choice(text[opened.pop() : at]):
            return True
    return bool(opened) and _has_choice(text[opened[0] :])


def _has_choice(text: str) -> bool:
    return "," in text or ".." in text


def _part(part: Mapping[str, Any], source: bytes) -> tuple[str, str]:
    match part.get("Type"):
        case "Lit":
            return _without_escapes(part["Value"]), ""
        case "SglQuoted" if part.get("Dollar"):
            return unescaped(part.get("Value", "")), "it uses the quotes $'…'"
        case "SglQuoted":
            return part.get("Value", ""), ""
        case "DblQuoted":
            return _in_double_quotes(part, source)
        case _:
            return _as_written(part, source), _why(part)


def _in_double_quotes(part: Mapping[str, Any], source: bytes) -> tuple[str, str]:
    text, doubt = "", 'it uses the quotes $"…"' if part.get("Dollar") else ""
    for inner in part.get("Parts", ()):
        if inner.get("Type") == "Lit":
            text += _ESCAPED_IN_QUOTES.sub(lambda found: found[1].replace("\n", ""), inner["Value"])
        else:
            text += _as_written(inner, source)
            doubt = doubt or _why(inner)
    return text, doubt


def _why(part: Mapping[str, Any]) -> str:
    match part.get("Type"):
        case "CmdSubst" | "ProcSubst":
            return "it substitutes a command"
        case "ExtGlob":
            return "it uses an extended pattern"
        case _:
            return "the shell would expand a '$'"


def _without_escapes(value: str) -> str:
    return _ESCAPED.sub(lambda found: found[1].replace("\n", ""), value)


def _ansi(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] in "xuU" and len(code) > 1:
        return _character(int(code[1:], 16))
    if code[0] in "01234567":
        return _character(int(code, 8))
    if code[0] == "c" and len(code) > 1:
        return _character(ord(code[1]) & 0x1F)
    return _ANSI_LETTERS.get(code, code)


def _character(number: int) -> str:
    return chr(number) if number < 0x110000 else "\ufffd"


def _as_written(part: Mapping[str, Any], source: bytes) -> str:
    return source[_offset(part["Pos"]) : _offset(part["End"])].decode("utf-8", "replace")


def _offset(place: Mapping[str, Any]) -> int:
    return int(place.get("Offset", 0))


@dataclass(frozen=True)
class SimpleCommand:
    """One program, or built-in, with its arguments; leading assignments come first."""

    words: tuple[str, ...]
    """After quote and escape removal; what is known only when it runs stands as it was written."""
    stdin: str = field(default="", compare=False)
    """Text it is fed, as far as that stands in the command line: a here-document, a here-string, an `echo`."""
    patterns: frozenset[int] = field(default=frozenset(), compare=False)
    """Positions of words that the shell would replace by the names of files they match."""
    shell: tuple[int | str, ...] = field(default=(), compare=False)
    """Numbers of the shells within shells that it is run in; none for the shell of the text itself. A name among
    them is that of a function whose body it stands in."""
    folder: str = field(default="", compare=False)
    """Where it is run, from the folder the text starts in, as far as that can be told."""

    @property
    def text(self) -> str:
        """The words joined by one blank: what rules match."""
        return " ".join(self.words)
