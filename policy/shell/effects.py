"""What a shell text would run, write and read, as far as that can be told before it runs.

Plain means that the words are what the shell will see, and that nothing in the text needs more understanding than
this package has. Only plain texts can be allowed by a rule. Deny and ask rules see every command of any text.

The parser is handed in: it starts a process, and this package has no effects.

In which folder each command of a text is run, were every change of folder before it to succeed.

Knows shells within shells: what a subshell, a part of a pipeline or `bash -c` does to its folder ends with it; and
functions: what one holds is run where it is called.
Looks at no file, so a folder is a path as it was written, from where the text starts.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from posixpath import basename, isabs, join
from typing import Any

from policy.shell.commands import everything_run, rough_commands
from policy.shell.parse import Found, walk
from policy.shell.words import SimpleCommand, is_invisible

__all__ = ["Parser", "ShellText", "SimpleCommand", "Unparsable", "placed", "read_shell", "standing", "unread"]

_FROM_HOME = re.compile(r"~|\$\{?HOME\b")
"""How a path begins that is the same wherever one stands."""
_MOVING: Mapping[str, tuple[str, ...]] = {"env": ("-C", "--chdir"), "sudo": ("-D", "--chdir")}
"""Wrappers, and their options that name the folder of what they run."""

_MOST_CALLS = 200
"""So many calls of functions are followed: functions that call functions make any number of a few words."""


@dataclass(frozen=True)
class _Shell:
    """What a shell knows of folders."""

    number: tuple[int | str, ...] = ()
    folder: str = ""
    before: str | None = None
    """Where `cd -` goes; None where that is not known."""
    stack: tuple[str, ...] = ()
    """Where `popd` goes, the next one last."""


def placed(folder: str, word: str) -> str:
    """The path that a word means in a folder."""
    return word if _FROM_HOME.match(word) else join(folder, word)


def standing(commands: Iterable[SimpleCommand]) -> Iterator[SimpleCommand]:
    """The commands, in the order they are run in, each with its folder."""
    functions = _Functions()
    yield from functions.walked(commands, [_Shell()])
    yield from functions.never_called()


class _Functions:
    """The functions of a text: what one holds stands where it is called, else where it is defined."""

    def __init__(self) -> None:
        self._bodies: dict[str, tuple[SimpleCommand, ...]] = {}
        self._uncalled: dict[str, _Shell] = {}
        self._calls_left = _MOST_CALLS

    def walked(
        self, commands: Iterable[SimpleCommand], shells: list[_Shell], within: tuple[str, ...] = ()
    ) -> Iterator[SimpleCommand]:
        """Commands of the text, or of a function within others; in the first of the shells, which is moved."""
        for command in commands:
            at = next((at for at, part in enumerate(command.shell) if isinstance(part, str)), None)
            here = _entered(shells, command.shell[:at])
            if at is not None:
                self._define(str(command.shell[at]), replace(command, shell=command.shell[at + 1 :]), here)
                continue
            yield replace(command, folder=here.folder)
            name = command.words[0]
            if (inner := _named_folder(command.words)) is not None:
                # What the wrapper runs is found in a shell of its own, right behind it.
                shells.append(replace(here, number=(*here.number, 0), folder=placed(here.folder, inner)))
            elif name in self._bodies and name not in within and self._calls_left:
                own = [replace(here, number=())]
                yield from self._called(name, own, within)
                shells[-1] = replace(own[0], number=here.number)
            else:
                shells[-1] = _moved(here, command.words)

    def never_called(self) -> Iterator[SimpleCommand]:
        """What is held by functions that something else may call."""
        for name, here in tuple(self._uncalled.items()):
            yield from self._called(name, [replace(here, number=())], ())

    def _define(self, name: str, command: SimpleCommand, here: _Shell) -> None:
        if name not in self._bodies:
            self._uncalled[name] = here
        self._bodies[name] = (*self._bodies.get(name, ()), command)

    def _called(self, name: str, shells: list[_Shell], within: tuple[str, ...]) -> Iterator[SimpleCommand]:
        self._calls_left -= 1
        self._uncalled.pop(name, None)
        return self.walked(self._bodies[name], shells, (*within, name))


def _entered(shells: list[_Shell], number: tuple[int | str, ...]) -> _Shell:
    """The shell of this number, made the last of those that are open."""
    while number[: len(shells[-1].number)] != shells[-1].number:
        shells.pop()
    if shells[-1].number != number:
        shells.append(replace(shells[-1], number=number))
    return shells[-1]


def _moved(shell: _Shell, words: tuple[str, ...]) -> _Shell:
    target = next((word for word in words[1:] if not word.startswith("-")), None)
    match words[0]:
        case "cd" if "-" in words:
            return shell if shell.before is None else replace(shell, folder=shell.before, before=shell.folder)
        case "cd":
            return _gone(shell, target or "~")
        case "pushd" if target is not None and not target.startswith("+"):
            return replace(_gone(shell, target), stack=(*shell.stack, shell.folder))
        case "popd" if shell.stack:
            return replace(shell, folder=shell.stack[-1], before=shell.folder, stack=shell.stack[:-1])
        case _:
            return shell


def _gone(shell: _Shell, word: str) -> _Shell:
    return replace(shell, folder=placed(shell.folder, word), before=shell.folder)


def _named_folder(words: tuple[str, ...]) -> str | None:
    options = _MOVING.get(basename(words[0]), ())
    for at, word in enumerate(words[1:], start=1) if options else ():
        if not (word.startswith("-") or "=" in word or words[at - 1].startswith("-")):
            return None  # From here on it is the command.
        for option in options:
            if word == option:
                return words[at + 1] if at + 1 < len(words) else None
            if word.startswith(f"{option}=") or (word.startswith(option) and not word.startswith("--")):
                return word.removeprefix(option).removeprefix("=")
    return None


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
