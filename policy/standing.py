"""In which folder each command of a text is run, were every change of folder before it to succeed.

Knows shells within shells: what a subshell, a part of a pipeline or `bash -c` does to its folder ends with it; and
functions: what one holds is run where it is called.
Looks at no file, so a folder is a path as it was written, from where the text starts.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from posixpath import basename, join

from policy.simple import SimpleCommand

__all__ = ["placed", "standing"]

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
