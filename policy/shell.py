"""What a shell text would run, write and read, as far as that can be told before it runs.

Plain means that the words are what the shell will see, and that nothing in the text needs more understanding than
this package has. Only plain texts can be allowed by a rule. Deny and ask rules see every command of any text.

The parser is handed in: it starts a process, and this package has no effects.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from posixpath import isabs, join
from typing import Any

from policy.commands import everything_run
from policy.rough import rough_commands
from policy.simple import SimpleCommand
from policy.standing import standing
from policy.syntax import Found, walk
from policy.words import is_invisible

__all__ = ["Parser", "ShellText", "SimpleCommand", "Unparsable", "read_shell", "unread"]

Parser = Callable[[str], Mapping[str, Any]]
"""The syntax tree of a bash text as `shfmt --to-json` writes it; raises `Unparsable`."""

_MAX_CHARS = 8192
_MAX_MOVES = 3
_MAX_PIECES = 40
"""Of code within a text, such as what follows `bash -c`."""
_BARE_WORDS = re.compile(r"[\w./:@%+,= -]*")
"""Code that no parser is needed for."""


class Unparsable(ValueError):
    """A text has no syntax tree: it is wrong, too big, or nothing can parse it; the message says which."""


@dataclass(frozen=True)
class ShellText:
    """A text, read."""

    commands: tuple[SimpleCommand, ...]
    """The simple commands of the text itself, nested ones included."""
    runs: tuple[SimpleCommand, ...] = ()
    """Those, without assignments and wrappers too, and what inline code in them would run."""
    written: tuple[str, ...] = ()
    """Every path that redirections may write to, from the folder the text starts in."""
    read: tuple[str, ...] = ()
    """Paths that redirections read."""
    folders: tuple[str, ...] = ("",)
    """Where the text may be while it runs, from the folder it starts in; "" is that folder."""
    not_plain: str = ""
    """Why the text is not plain; empty when it is."""
    is_read: bool = True
    """Whether it was parsed, and the code within it; if not, some of the commands are guesses."""


def read_shell(text: str, parse: Parser) -> ShellText:
    """Read a whole command text; never fails."""
    doubt = _doubt_at_sight(text)
    if len(text) > _MAX_CHARS:
        return unread(text, doubt)
    try:
        found = _walked(text, parse)
    except Unparsable as error:
        return unread(text, doubt or str(error))
    inline = _InlineCode(parse)
    runs = _each_once(everything_run(found.commands, inline.read))
    if inline.is_exhausted:
        doubt = doubt or f"it holds more than {_MAX_PIECES} pieces of code within it"
    return replace(_settled(found, doubt, runs), is_read=not inline.is_exhausted)


def unread(text: str, why: str = "it was not parsed") -> ShellText:
    """A text nothing is known of but its characters."""
    guesses = rough_commands(text)
    runs = everything_run(guesses, rough_commands) if len(text) <= _MAX_CHARS else guesses
    return ShellText(guesses, _each_once(guesses, runs), not_plain=why, is_read=False)


def _each_once(*readings: Iterable[SimpleCommand]) -> tuple[SimpleCommand, ...]:
    """Every command once for each folder it is run in; a reading is all of the text."""
    return tuple({(run.folder, run): run for runs in readings for run in standing(runs)}.values())


def _doubt_at_sight(text: str) -> str:
    if len(text) > _MAX_CHARS:
        return f"it is longer than {_MAX_CHARS} characters"
    if any(is_invisible(char) for char in text):
        return "it has control or invisible characters"
    if text.endswith("\\"):
        # Whatever is run after the text would become a part of its last word.
        return "it ends in a backslash"
    if "\\\n" in text and "#" in text:
        # Shells disagree on a comment that ends in a backslash.
        return "a line goes on after a backslash, and there may be a comment"
    return ""


def _walked(text: str, parse: Parser) -> Found:
    return walk(parse(text), text.encode("utf-8", "surrogatepass"))


class _InlineCode:
    """Reads pieces of code within a text: each once, and only so many with the parser, which costs a process."""

    def __init__(self, parse: Parser) -> None:
        self._parse = parse
        self._known: dict[str, tuple[SimpleCommand, ...]] = {}
        self._parsed = 0

    @property
    def is_exhausted(self) -> bool:
        """Whether some piece was only guessed at because there were too many."""
        return self._parsed > _MAX_PIECES

    def read(self, code: str) -> tuple[SimpleCommand, ...]:
        """The simple commands of a piece."""
        if code not in self._known:
            self._known[code] = self._read(code)
        return self._known[code]

    def _read(self, code: str) -> tuple[SimpleCommand, ...]:
        if _BARE_WORDS.fullmatch(code):
            return rough_commands(code)
        self._parsed += 1
        if self.is_exhausted:
            return rough_commands(code)
        try:
            return tuple(_walked(code, self._parse).commands)
        except Unparsable:
            return rough_commands(code)


def _settled(found: Found, doubt: str, runs: tuple[SimpleCommand, ...]) -> ShellText:
    folders, is_known = _folders(found.moves)
    text = ShellText(
        tuple(found.commands), runs, read=tuple(found.read), folders=folders, not_plain=doubt or found.not_plain
    )
    text = replace(text, written=tuple(join(folder, path) for path in found.written for folder in folders))
    if not is_known and not all(map(isabs, found.written)):
        text = replace(text, not_plain=text.not_plain or "it writes a file after a change of folder")
    return text


def _folders(moves: list[str | None]) -> tuple[tuple[str, ...], bool]:
    """Every folder some of the moves may lead to: any of them may fail, or not be reached."""
    known = [move for move in moves if move is not None]
    is_known = len(known) == len(moves) <= _MAX_MOVES
    if len(moves) > _MAX_MOVES:
        return ("", *known), False
    ways = (way for count in range(len(known) + 1) for way in combinations(known, count))
    return tuple(dict.fromkeys(join("", *way) for way in ways)), is_known
