"""What a shell text would run, write and read, as far as that can be told before it runs.

A text is clear if its words are what the shell will see, and nothing in it needs more understanding than this
package has. Only clear texts can be allowed by a rule. Deny and ask rules see every command of any text.

The parser is passed in, because it starts a process and this package has no effects.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from posixpath import isabs, join
from typing import Any

from policy.shell.arguments import shows_names
from policy.shell.commands import computed_program_reason, expand_commands, guess_commands
from policy.shell.earlier_commands import changed_shell_reason, follow_paths
from policy.shell.folders import with_folders
from policy.shell.syntax_tree import TreeContent, walk_tree
from policy.shell.words import SimpleCommand, is_invisible

__all__ = ["Parser", "ShellText", "SimpleCommand", "Unparsable", "parse_shell", "unparsed_shell"]

Parser = Callable[[str], Mapping[str, Any]]
"""The syntax tree of a bash text as `shfmt --to-json` writes it; raises `Unparsable`."""

_MAX_CHARS = 8192
_MAX_MOVES = 3
_MAX_PIECES = 40
"""Of code within a text, such as what follows `bash -c`."""
_BARE_WORDS = re.compile(r"[\w./:@%+,= -]*")
"""Code that needs no parser."""


class Unparsable(ValueError):
    """A text has no syntax tree: it is wrong, too big, or nothing can parse it; the message says which."""


@dataclass(frozen=True)
class ShellText:
    """A text, parsed."""

    commands: tuple[SimpleCommand, ...]
    """The simple commands of the text itself, nested ones included."""
    runs: tuple[SimpleCommand, ...] = ()
    """Those, without assignments and wrappers too, and what inline code in them would run."""
    written: tuple[str, ...] = ()
    """Every path that redirections may write to, from the folder the text starts in."""
    read: tuple[str, ...] = ()
    """Paths that redirections read, and in inline code also those that they write."""
    named: tuple[str, ...] = ()
    """Words beside commands that may name what they work on: of loops, arrays and tests."""
    folders: tuple[str, ...] = ("",)
    """Where the text may be while it runs, from the folder it starts in; "" is that folder."""
    late_folders: frozenset[str] = frozenset()
    """Folders its commands work in that an earlier command may make a link, if they do not exist before."""
    unknown_target: str = ""
    """Why a redirection may write any file; empty where its path tells which."""
    unclear_reason: str = ""
    """Why the text is not clear; empty when it is."""
    computed_reason: str = ""
    """Why rules about commands cannot be checked: a program in it is computed; empty where none is."""
    is_parsed: bool = True
    """Whether it was parsed, and the code within it; if not, some of the commands are guesses."""

    @cached_property
    def reads_contents(self) -> bool:
        """Whether a command may read what is in its files, and does not only show their names."""
        return any(not shows_names(command.words) for command in self.runs)

    @cached_property
    def patterns(self) -> tuple[str, ...]:
        """Words that may become other words when the text runs; what an expansion adds to a name is a star.

        A name that is nothing but an expansion stays as it is, as it could be any.
        """
        commands = (*self.runs, *self.commands)
        globs = [command.words[at] for command in commands for at in command.patterns]
        computed = [command.words[at] for command in commands for at in command.computed - command.patterns]
        computed += filter(_MAY_CHANGE.search, (*self.written, *self.read, *self.named))
        # A path with a blank in it is rarer than a sentence with a variable in it.
        words = (*globs, *(word for word in computed if " " not in _EXPANSION.sub("", word)))
        return tuple(dict.fromkeys(map(_as_pattern, words)))


_MAY_CHANGE = re.compile(r"[*?\[$`]|~\+")
_EXPANSION = re.compile(r"\$\{[^}]*\}|\$\([^()]*\)|\$[A-Za-z_]\w*|\$[\d@*#?$!_-]|`[^`]*`")
_EXTENDED_GLOB = re.compile(r"[@?*+!]\([^()]*\)")
_HERE = re.compile(r"(?:\$PWD\b|\$\{PWD\}|\$\(pwd\)|`pwd`|~\+)(?=/|$)")


def _as_pattern(word: str) -> str:
    names = _EXTENDED_GLOB.sub("*", _HERE.sub(".", word)).split("/")
    return "/".join(name if _EXPANSION.fullmatch(name) else _EXPANSION.sub("*", name) for name in names)


def parse_shell(text: str, parse: Parser) -> ShellText:
    """Parse a whole command text; never fails."""
    reason = _reason_at_sight(text)
    if len(text) > _MAX_CHARS:
        return unparsed_shell(text, reason)
    try:
        content = _tree_content(text, parse)
    except Unparsable as error:
        return unparsed_shell(text, reason or str(error))
    inline = _InlineCode(parse)
    runs = _distinct(expand_commands(content.commands, inline.commands))
    if inline.is_exhausted:
        reason = reason or f"it contains more than {_MAX_PIECES} pieces of code"
    folders, is_known = _possible_folders(content.moves)
    reason = reason or content.unclear_reason
    if not is_known and not all(map(isabs, content.written)):
        reason = reason or "it writes a file after a change of folder"
    commands = tuple(content.commands)
    has_functions = any(isinstance(part, str) for command in commands for part in command.shell)
    paths = follow_paths(commands if has_functions else tuple(with_folders(commands)), content.commands_before)
    return ShellText(
        paths.commands,
        runs,
        tuple(join(folder, path) for path in content.written for folder in folders),
        tuple(dict.fromkeys((*content.read, *inline.redirections))),
        tuple(dict.fromkeys(content.named)),
        folders,
        paths.late_folders,
        paths.redirection_reason,
        reason or changed_shell_reason(commands) or paths.redirection_reason,
        next(filter(None, map(computed_program_reason, (*content.commands, *runs))), ""),
        is_parsed=not inline.is_exhausted,
    )


def unparsed_shell(text: str, reason: str = "it was not parsed") -> ShellText:
    """A text of which only the characters are known."""
    guesses = guess_commands(text)
    runs = expand_commands(guesses, guess_commands) if len(text) <= _MAX_CHARS else guesses
    return ShellText(guesses, _distinct(guesses, runs), unclear_reason=reason, is_parsed=False)


def _reason_at_sight(text: str) -> str:
    if len(text) > _MAX_CHARS:
        return f"it is longer than {_MAX_CHARS} characters"
    if any(is_invisible(char) for char in text):
        return "it has control or invisible characters"
    if text.endswith("\\"):
        # Whatever is run after the text would become a part of its last word.
        return "it ends in a backslash"
    if "\\\n" in text and "#" in text:
        # Shells disagree on a comment that ends in a backslash.
        return "a line continues after a backslash, and there may be a comment"
    return ""


def _tree_content(text: str, parse: Parser) -> TreeContent:
    return walk_tree(parse(text), text.encode("utf-8", "surrogatepass"))


def _distinct(*readings: Iterable[SimpleCommand]) -> tuple[SimpleCommand, ...]:
    """Every command once for each folder it is run in; each reading is of the whole text."""
    return tuple({(run.folder, run): run for runs in readings for run in with_folders(runs)}.values())


class _InlineCode:
    """Parses pieces of code within a text: each once, and only so many, as each costs a process."""

    def __init__(self, parse: Parser) -> None:
        self._parse = parse
        self.redirections: list[str] = []
        """Paths that redirections in the pieces read or write, as far as they are known."""
        self._known: dict[str, tuple[SimpleCommand, ...]] = {}
        self._parsed = 0

    @property
    def is_exhausted(self) -> bool:
        """Whether some piece was only guessed at because there were too many."""
        return self._parsed > _MAX_PIECES

    def commands(self, code: str) -> tuple[SimpleCommand, ...]:
        """The simple commands of a piece."""
        if code not in self._known:
            needs_parser = _BARE_WORDS.fullmatch(code) is None
            self._parsed += needs_parser
            self._known[code] = guess_commands(code)
            if needs_parser and not self.is_exhausted:
                with suppress(Unparsable):
                    content = _tree_content(code, self._parse)
                    self._known[code] = tuple(content.commands)
                    self.redirections += (*content.read, *content.written)
        return self._known[code]


def _possible_folders(moves: list[str | None]) -> tuple[tuple[str, ...], bool]:
    """Every folder that some of the moves may lead to, as any of them may fail; and whether all are known."""
    known = [move for move in moves if move is not None]
    is_known = len(known) == len(moves) <= _MAX_MOVES
    if len(moves) > _MAX_MOVES:
        return ("", *known), False
    ways = (way for count in range(len(known) + 1) for way in combinations(known, count))
    return tuple(dict.fromkeys(join("", *way) for way in ways)), is_known
