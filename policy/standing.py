"""In which folder each command of a text is run, were every change of folder before it to succeed.

Knows shells within shells: what a subshell, a part of a pipeline or `bash -c` does to its folder ends with it.
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


@dataclass(frozen=True)
class _Shell:
    """What a shell knows of folders."""

    number: tuple[int, ...] = ()
    folder: str = ""
    before: str | None = None
    """Where `cd -` goes; None where that is not known."""
    stack: tuple[str, ...] = ()
    """Where `popd` goes, the next one last."""


def placed(folder: str, word: str) -> str:
    """The path that a word means in a folder."""
    return word if _FROM_HOME.match(word) else join(folder, word)


def standing(commands: Iterable[SimpleCommand]) -> Iterator[SimpleCommand]:
    """The commands, in the order of the text, each with its folder."""
    shells = [_Shell()]
    for command in commands:
        while command.shell[: len(shells[-1].number)] != shells[-1].number:
            shells.pop()
        if shells[-1].number != command.shell:
            shells.append(replace(shells[-1], number=command.shell))
        here = shells[-1]
        yield replace(command, folder=here.folder)
        if (inner := _named_folder(command.words)) is not None:
            # What the wrapper runs is found in a shell of its own, right behind it.
            shells.append(replace(here, number=(*here.number, 0), folder=placed(here.folder, inner)))
        else:
            shells[-1] = _moved(here, command.words)


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
