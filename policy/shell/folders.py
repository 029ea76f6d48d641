"""In which folder each command of a text runs, if every change of folder before it succeeds.

A subshell, a part of a pipeline or `bash -c` has a folder of its own, and a function runs where it is called.
A folder is a path as written, seen from the folder the text starts in; no file is looked at.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from posixpath import basename, join

from policy.shell.words import SimpleCommand

__all__ = ["placed", "with_folders"]

_FROM_HOME = re.compile(r"~|\$\{?HOME\b")
"""How a path begins that means the same in every folder."""
_FOLDER_OPTIONS: Mapping[str, tuple[str, ...]] = {"env": ("-C", "--chdir"), "sudo": ("-D", "--chdir")}
"""Wrappers, and their options that name the folder of what they run."""
_MAX_CALLS = 200
"""How many calls of functions are followed, as functions that call functions multiply a few words without limit."""


@dataclass(frozen=True)
class _Shell:
    """What a shell knows of folders."""

    number: tuple[int | str, ...] = ()
    folder: str = ""
    previous: str | None = None
    """Where `cd -` goes; None where that is not known."""
    stack: tuple[str, ...] = ()
    """Where `popd` goes, the next one last."""


def placed(folder: str, word: str) -> str:
    """The path that a word means in a folder."""
    return word if _FROM_HOME.match(word) else join(folder, word)


def with_folders(commands: Iterable[SimpleCommand]) -> Iterator[SimpleCommand]:
    """The commands, in the order they are run in, each with its folder."""
    tracker = _FolderTracker()
    yield from tracker.follow(commands, [_Shell()])
    yield from tracker.follow_uncalled()


class _FolderTracker:
    """Follows the commands of a text; those of a function where it is called, or else where it is defined."""

    def __init__(self) -> None:
        self._bodies: dict[str, tuple[SimpleCommand, ...]] = {}
        self._uncalled: dict[str, _Shell] = {}
        self._calls_left = _MAX_CALLS

    def follow(
        self, commands: Iterable[SimpleCommand], shells: list[_Shell], callers: tuple[str, ...] = ()
    ) -> Iterator[SimpleCommand]:
        """Commands of the text, or of a function with these callers; they change the folder of the last shell."""
        for command in commands:
            at = next((at for at, part in enumerate(command.shell) if isinstance(part, str)), None)
            here = _enter(shells, command.shell[:at])
            if at is not None:
                name, inside = str(command.shell[at]), replace(command, shell=command.shell[at + 1 :])
                if name not in self._bodies:
                    self._uncalled[name] = here
                self._bodies[name] = (*self._bodies.get(name, ()), inside)
                continue
            yield replace(command, folder=here.folder)
            name = command.words[0]
            if (inner := _folder_option(command.words)) is not None:
                # The command that the wrapper runs comes next, in a shell of its own.
                shells.append(replace(here, number=(*here.number, 0), folder=placed(here.folder, inner)))
            elif name in self._bodies and name not in callers and self._calls_left:
                own = [replace(here, number=())]
                yield from self._call(name, own, callers)
                shells[-1] = replace(own[0], number=here.number)
            else:
                shells[-1] = _after_command(here, command.words)

    def follow_uncalled(self) -> Iterator[SimpleCommand]:
        """The bodies of functions that something outside of the text may call."""
        for name, here in tuple(self._uncalled.items()):
            yield from self._call(name, [replace(here, number=())], ())

    def _call(self, name: str, shells: list[_Shell], callers: tuple[str, ...]) -> Iterator[SimpleCommand]:
        self._calls_left -= 1
        self._uncalled.pop(name, None)
        return self.follow(self._bodies[name], shells, (*callers, name))


def _enter(shells: list[_Shell], number: tuple[int | str, ...]) -> _Shell:
    """The shell of this number, made the last of those that are open."""
    while number[: len(shells[-1].number)] != shells[-1].number:
        shells.pop()
    if shells[-1].number != number:
        shells.append(replace(shells[-1], number=number))
    return shells[-1]


def _after_command(shell: _Shell, words: tuple[str, ...]) -> _Shell:
    target = next((word for word in words[1:] if not word.startswith("-")), None)
    match words[0]:
        case "cd" if "-" in words:
            return shell if shell.previous is None else replace(shell, folder=shell.previous, previous=shell.folder)
        case "cd":
            return replace(shell, folder=placed(shell.folder, target or "~"), previous=shell.folder)
        case "pushd" if target is not None and not target.startswith("+"):
            stack = (*shell.stack, shell.folder)
            return replace(shell, folder=placed(shell.folder, target), previous=shell.folder, stack=stack)
        case "popd" if shell.stack:
            return replace(shell, folder=shell.stack[-1], previous=shell.folder, stack=shell.stack[:-1])
        case _:
            return shell


def _folder_option(words: tuple[str, ...]) -> str | None:
    """The folder that a wrapper runs its command in, if an option names one."""
    options = _FOLDER_OPTIONS.get(basename(words[0]), ())
    for at, word in enumerate(words[1:], start=1) if options else ():
        if not (word.startswith("-") or "=" in word or words[at - 1].startswith("-")):
            return None  # The command begins here.
        for option in options:
            if word == option:
                return words[at + 1] if at + 1 < len(words) else None
            if word.startswith(f"{option}=") or (word.startswith(option) and not word.startswith("--")):
                return word.removeprefix(option).removeprefix("=")
    return None
